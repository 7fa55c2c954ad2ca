"""TicketAPI: a queue of support tickets with titles, priorities and states."""

from random import Random
from typing import Any

from producers.synthesis.bfcl.words import LISTS
from producers.synthesis.catalogue import Arguments, Function, Sketch, Toolbox
from producers.synthesis.plan import Argument

OWNER = "TicketAPI"
_RECENT = 0.8


def _ticket(world: Sketch, rng: Random) -> Argument:
    last = world.latest("create_ticket", "id")
    if last is not None and rng.random() < _RECENT:
        return last
    queue = world.state[OWNER].get("ticket_queue", [])
    ids = [ticket["id"] for ticket in queue if isinstance(ticket.get("id"), int) and "status" in ticket]
    return rng.choice(ids) if ids else last


def _on_ticket(world: Sketch, rng: Random) -> Arguments | None:
    ticket = _ticket(world, rng)
    return None if ticket is None else {"ticket_id": ticket}


def _open(world: Sketch, rng: Random) -> Arguments | None:
    ticket = _ticket(world, rng)
    if ticket is None or world.used("close_ticket", ticket_id=ticket) or world.used("resolve_ticket", ticket_id=ticket):
        return None
    return {"ticket_id": ticket}


def _resolve(world: Sketch, rng: Random) -> Arguments | None:
    base = _open(world, rng)
    return None if base is None else {**base, "resolution": rng.choice(LISTS["resolutions"])}


def _create(world: Sketch, rng: Random) -> Arguments | None:
    free = [title for title in LISTS["titles"] if not world.used("create_ticket", title=title)]
    return {"title": rng.choice(free), "description": rng.choice(LISTS["notes"]), "priority": rng.randint(1, 5)}


def _edit(world: Sketch, rng: Random) -> Arguments | None:
    base = _on_ticket(world, rng)
    return None if base is None else {**base, "updates": {"priority": rng.randint(1, 5)}}


def _edit_words(arguments: Arguments) -> tuple[str, ...]:
    level = arguments["updates"]["priority"]  # type: ignore[index,call-overload]
    return (f"change {{ticket_id}} so that its priority is {level}", f"set the priority of {{ticket_id}} to {level}")


def _login(world: Sketch, rng: Random) -> Arguments | None:
    if world.used("ticket_login"):
        return None
    return {"username": rng.choice(LISTS["accounts"]), "password": f"pass{rng.randint(100, 999)}word"}


def _mine(world: Sketch, rng: Random) -> Arguments | None:
    if not all("created_by" in ticket and "status" in ticket for ticket in world.state[OWNER].get("ticket_queue", [])):
        return None
    return {"status": rng.choice(("Open", "Closed", "Resolved"))}


FUNCTIONS = {
    "create_ticket": Function(
        ("open a support ticket titled {title} with the text {description} at priority {priority}",), _create
    ),
    "get_ticket": Function(("show me the details of {ticket_id}", "pull up {ticket_id}"), _on_ticket),
    "close_ticket": Function(("close {ticket_id}",), _open),
    "resolve_ticket": Function(("mark {ticket_id} as solved with the remark {resolution}",), _resolve),
    "edit_ticket": Function(_edit_words, _edit),
    "ticket_login": Function(("sign me in to the support desk as {username} with the passphrase {password}",), _login),
    "ticket_get_login_status": Function(("check whether I am signed in to the support desk",)),
    "logout": Function(("sign me out of the support desk",)),
    "get_user_tickets": Function(("show me my own tickets that are {status}",), _mine),
}
CHAINS = (
    ("ticket_login", "create_ticket"), ("create_ticket", "get_ticket"), ("get_ticket", "resolve_ticket"),
    ("get_ticket", "close_ticket"), ("create_ticket", "resolve_ticket"),
)  # fmt: skip
GOALS = ("the support desk backlog", "the service review", "the maintenance round")


def vary(config: dict[str, Any], rng: Random) -> None:
    """Rewrites titles and texts of the queue; ids and states stay."""
    for ticket in config.get("ticket_queue", []):
        if "title" in ticket:
            ticket["title"] = rng.choice(LISTS["titles"])
        if "description" in ticket:
            ticket["description"] = rng.choice(LISTS["notes"])
    if isinstance(config.get("ticket_counter"), int):
        config["ticket_counter"] += rng.randint(0, 40)


TOOLBOX = Toolbox(FUNCTIONS, CHAINS, vary, GOALS)
