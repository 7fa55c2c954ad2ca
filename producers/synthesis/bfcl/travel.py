"""TravelAPI: flights between airports, bookings, cards, a budget and an access code."""

from random import Random
from typing import Any

from producers.synthesis.bfcl.words import LISTS
from producers.synthesis.catalogue import Arguments, Function, Sketch, Toolbox
from producers.synthesis.plan import Argument

OWNER = "TravelAPI"
_AIRPORTS = {
    "Rivermist": "RMS", "Stonebrook": "SBK", "Maplecrest": "MPC", "Silverpine": "SVP", "San Francisco": "SFO",
    "Los Angeles": "LAX", "New York": "JFK", "Chicago": "ORD", "Boston": "BOS",
}  # fmt: skip
_ROUTES = (
    ("SFO", "LAX"), ("SFO", "JFK"), ("SFO", "ORD"), ("SFO", "BOS"), ("LAX", "SFO"), ("LAX", "JFK"), ("LAX", "BOS"),
    ("JFK", "ORD"), ("JFK", "BOS"), ("JFK", "LAX"), ("ORD", "LAX"), ("ORD", "BOS"), ("RMS", "JFK"), ("RMS", "BOS"),
    ("RMS", "SBK"), ("RMS", "LAX"), ("SBK", "MPC"),
)  # fmt: skip
_CURRENCIES = ("EUR", "GBP", "CAD", "AUD", "RMB")


def _token(world: Sketch) -> Argument:
    signed = world.latest("authenticate_travel", "access_token")
    return signed if signed is not None else str(world.state[OWNER].get("access_token") or "abc123xyz")


def _card(world: Sketch, rng: Random) -> Argument:
    cards = sorted(key for key, card in world.state[OWNER].get("credit_card_list", {}).items() if "balance" in card)
    return rng.choice(cards) if cards else None


def _day(rng: Random) -> str:
    return f"2026-{rng.randint(10, 12)}-{rng.randint(10, 28)}"


def _cities(world: Sketch, rng: Random) -> Arguments | None:
    free = [city for city in sorted(_AIRPORTS) if not world.used("get_nearest_airport_by_city", location=city)]
    return {"location": rng.choice(free)} if free else None


def _trip(world: Sketch, rng: Random) -> Arguments:
    """The journey priced last, else a new one."""
    known = world.notes.get("trip")
    if known is not None and not world.used("book_flight", **known) and rng.random() < 0.7:
        return dict(known)
    start, end = rng.choice(_ROUTES)
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
    return {"access_token": _token(world), "card_id": card, **_trip(world, rng)}


def _booking(world: Sketch) -> Argument:
    known = world.latest("book_flight", "booking_id")
    if known is None or world.used("cancel_booking", booking_id=known):
        return None
    return known


def _on_booking(world: Sketch, rng: Random) -> Arguments | None:
    del rng
    booking = _booking(world)
    return None if booking is None else {"access_token": _token(world), "booking_id": booking}


def _support(world: Sketch, rng: Random) -> Arguments | None:
    booking = _booking(world)
    return None if booking is None else {"booking_id": booking, "message": rng.choice(LISTS["notes"])}


def _insure(world: Sketch, rng: Random) -> Arguments | None:
    booking, card = _booking(world), _card(world, rng)
    if booking is None or card is None:
        return None
    kind = rng.choice(("comprehensive", "basic", "travel"))
    cost = float(rng.randrange(40, 300, 20))
    return {
        "access_token": _token(world), "insurance_type": kind, "booking_id": booking, "insurance_cost": cost,
        "card_id": card,
    }  # fmt: skip


def _balance(world: Sketch, rng: Random) -> Arguments | None:
    card = _card(world, rng)
    return None if card is None else {"access_token": _token(world), "card_id": card}


def _exchange(world: Sketch, rng: Random) -> Arguments | None:
    del world
    return {
        "base_currency": rng.choice(_CURRENCIES),
        "target_currency": "USD",
        "value": float(rng.randrange(500, 9000, 50)),
    }


def _budget(world: Sketch, rng: Random) -> Arguments | None:
    converted = world.latest("compute_exchange_rate", "exchanged_value", within_turn=True)
    limit: Argument = converted if converted is not None else float(rng.randrange(1000, 9000, 100))
    return {"access_token": _token(world), "budget_limit": limit}


def _history(world: Sketch, rng: Random) -> Arguments | None:
    del rng
    return {"access_token": _token(world)}


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
        "access_token": _token(world), "card_number": number, "expiration_date": f"{rng.randint(10, 12)}/2028",
        "cardholder_name": f"{first} {last}", "card_verification_number": rng.randint(100, 999),
    }  # fmt: skip


_WITH = " using {access_token}"
FUNCTIONS = {
    "authenticate_travel": Function(
        (
            "sign me in for travel as {user_first_name} {user_last_name} with client {client_id}, "
            "secret {client_secret} and refresh code {refresh_token}, with both reading and writing rights",
        ),
        _sign_in,
        implied=frozenset({"grant_type"}),
    ),
    "travel_get_login_status": Function(("check whether I am signed in for travel",)),
    "get_budget_fiscal_year": Function(("tell me which fiscal year the travel budget is for",)),
    "register_credit_card": Function(
        (
            "register my card {card_number}, valid until {expiration_date}, in the name of {cardholder_name}, "
            "security number {card_verification_number}" + _WITH,
        ),
        _register,
    ),
    "get_flight_cost": Function(
        ("tell me what a {travel_class} seat from {travel_from} to {travel_to} costs on {travel_date}",), _cost
    ),
    "get_credit_card_balance": Function(("check what is left on {card_id}" + _WITH,), _balance),
    "book_flight": Function(
        ("book a {travel_class} seat from {travel_from} to {travel_to} on {travel_date} with {card_id}" + _WITH,), _book
    ),
    "retrieve_invoice": Function(("get me the invoice of {booking_id}" + _WITH,), _on_booking),
    "get_booking_history": Function(("show me all my bookings" + _WITH,), _history),
    "list_all_airports": Function(("list all the airports you know",)),
    "cancel_booking": Function(("call off {booking_id}" + _WITH,), _on_booking),
    "compute_exchange_rate": Function(("convert {value} from {base_currency} to {target_currency}",), _exchange),
    "verify_traveler_information": Function(
        ("confirm the traveler {first_name} {last_name}, born {date_of_birth}, passport {passport_number}",), _verify
    ),
    "set_budget_limit": Function(("cap my travel spending at {budget_limit}" + _WITH,), _budget),
    "get_nearest_airport_by_city": Function(("tell me the airport closest to {location}",), _cities),
    "purchase_insurance": Function(
        ("insure {booking_id} with {insurance_type} cover for {insurance_cost} dollars from {card_id}" + _WITH,),
        _insure,
    ),
    "contact_customer_support": Function(("write to the travel help desk about {booking_id}: {message}",), _support),
    "get_all_credit_cards": Function(("show me the cards I have on file",)),
}
CHAINS = (
    ("get_flight_cost", "book_flight"), ("book_flight", "retrieve_invoice"), ("book_flight", "cancel_booking"),
    ("compute_exchange_rate", "set_budget_limit"), ("authenticate_travel", "book_flight"),
    ("book_flight", "purchase_insurance"), ("get_flight_cost", "book_flight", "retrieve_invoice"),
)  # fmt: skip
GOALS = ("the conference trip", "the summer journey", "the sales tour")


def vary(config: dict[str, Any], rng: Random) -> None:
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
    config["random_seed"] = rng.randrange(1000, 999999)


TOOLBOX = Toolbox(FUNCTIONS, CHAINS, vary, GOALS)
