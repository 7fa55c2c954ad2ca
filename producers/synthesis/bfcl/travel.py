"""TravelAPI: flights between airports, bookings, cards, a budget and an access code."""

from random import Random
from typing import Any

from producers.synthesis.bfcl.sketch import Arguments, Sketch
from producers.synthesis.bfcl.table import read_class, toolbox
from producers.synthesis.plan import Argument

OWNER = "TravelAPI"
_TABLE = read_class("travel")


def _token(world: Sketch, rng: Random) -> Argument:
    del rng
    signed = world.latest("authenticate_travel", "access_token")
    return signed if signed is not None else str(world.state[OWNER].get("access_token") or "abc123xyz")


def _card(world: Sketch, rng: Random) -> Argument:
    cards = sorted(key for key, card in world.state[OWNER].get("credit_card_list", {}).items() if "balance" in card)
    return rng.choice(cards) if cards else None


def _day(rng: Random) -> str:
    return f"2026-{rng.randint(10, 12)}-{rng.randint(10, 28)}"


def _trip(world: Sketch, rng: Random) -> Arguments:
    """The journey priced last, else a new one."""
    known = world.notes.get("trip")
    if known is not None and not world.used("book_flight", **known) and rng.random() < 0.7:
        return dict(known)
    start, end = rng.choice(_TABLE.lists["routes"]).split()
    seat = rng.choice(("economy", "business", "first"))
    return {"travel_from": start, "travel_to": end, "travel_date": _day(rng), "travel_class": seat}


def _cost(world: Sketch, rng: Random) -> Arguments | None:
    trip = _trip(world, rng)
    world.notes["trip"] = trip
    return trip


def _book(world: Sketch, rng: Random) -> Arguments | None:
    card = _card(world, rng)
    if card is None:
        return None
    return {"access_token": _token(world, rng), "card_id": card, **_trip(world, rng)}


def _booking(world: Sketch, rng: Random) -> Argument:
    del rng
    known = world.latest("book_flight", "booking_id")
    if known is None or world.used("cancel_booking", booking_id=known):
        return None
    return known


def _insure(world: Sketch, rng: Random) -> Arguments | None:
    booking, card = _booking(world, rng), _card(world, rng)
    if booking is None or card is None:
        return None
    kind = rng.choice(("comprehensive", "basic", "travel"))
    cost = float(rng.randrange(40, 300, 20))
    return {
        "access_token": _token(world, rng), "insurance_type": kind, "booking_id": booking, "insurance_cost": cost,
        "card_id": card,
    }  # fmt: skip


def _owner(world: Sketch) -> tuple[str, str]:
    config = world.state[OWNER]
    return str(config.get("user_first_name") or "Michael"), str(config.get("user_last_name") or "Thompson")


def _verify(world: Sketch, rng: Random) -> Arguments | None:
    first, last = _owner(world)
    born = f"19{rng.randint(60, 95)}-0{rng.randint(1, 9)}-{rng.randint(10, 28)}"
    passport = f"US{rng.randint(100000, 999999)}"
    return {"first_name": first, "last_name": last, "date_of_birth": born, "passport_number": passport}


def _sign_in(world: Sketch, rng: Random) -> Arguments | None:
    if world.steps:
        return None
    first, last = _owner(world)
    number = rng.randint(100, 999)
    return {
        "client_id": f"client_{number}", "client_secret": f"secret{number}", "refresh_token": f"fresh{number}",
        "grant_type": "read_write", "user_first_name": first, "user_last_name": last,
    }  # fmt: skip


def _register(world: Sketch, rng: Random) -> Arguments | None:
    first, last = _owner(world)
    number = "-".join(str(rng.randint(1000, 9999)) for _ in range(4))
    return {
        "access_token": _token(world, rng), "card_number": number, "expiration_date": f"{rng.randint(10, 12)}/2028",
        "cardholder_name": f"{first} {last}", "card_verification_number": rng.randint(100, 999),
    }  # fmt: skip


def _limit(world: Sketch, rng: Random) -> Argument:
    converted = world.latest("compute_exchange_rate", "exchanged_value", within_turn=True)
    return converted if converted is not None else float(rng.randrange(1000, 9000, 100))


def _vary(config: dict[str, Any], rng: Random) -> None:
    """Other balances, card numbers, access code and budget; bookings stay."""
    cards = config.setdefault("credit_card_list", {}) or {"card_1001": {"balance": 5000}}
    booked = {str(b.get("card_id")) for b in config.get("booking_record", {}).values() if isinstance(b, dict)}
    config["credit_card_list"] = {
        (key if key in booked else f"card_{rng.randint(1000, 9999)}"): {
            **card,
            "balance": float(rng.randrange(9000, 40000, 500)),
        }
        for key, card in cards.items()
    }
    config["access_token"] = f"code{rng.randint(10000, 99999)}"
    config["token_expires_in"] = 3600
    config["budget_limit"] = None


TOOLBOX = toolbox(
    _TABLE,
    _vary,
    {"token": _token, "card": _card, "booking": _booking, "limit": _limit},
    {
        "authenticate_travel": _sign_in, "register_credit_card": _register, "get_flight_cost": _cost,
        "book_flight": _book, "verify_traveler_information": _verify, "purchase_insurance": _insure,
    },
)  # fmt: skip
