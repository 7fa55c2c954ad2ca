"""TicketAPI: a queue of support tickets with titles, priorities and states."""

from random import Random
from typing import Any

from producers.synthesis.bfcl.sketch import Sketch
from producers.synthesis.bfcl.table import read_class, toolbox
from producers.synthesis.bfcl.words import LISTS
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


def _open(world: Sketch, rng: Random) -> Argument:
    ticket = _ticket(world, rng)
    settled = world.used("close_ticket", ticket_id=ticket) or world.used("resolve_ticket", ticket_id=ticket)
    return None if settled else ticket


def _priority(world: Sketch, rng: Random) -> Argument:
    del world
    return {"priority": rng.randint(1, 5)}


def _status(world: Sketch, rng: Random) -> Argument:
    queue = world.state[OWNER].get("ticket_queue", [])
    complete = all("created_by" in ticket and "status" in ticket for ticket in queue)
    return rng.choice(("Open", "Closed", "Resolved")) if complete else None


def _vary(config: dict[str, Any], rng: Random) -> None:
    """Rewrites titles and texts of the queue; ids and states stay."""
    for ticket in config.get("ticket_queue", []):
        if "title" in ticket:
            ticket["title"] = rng.choice(LISTS["titles"])
        if "description" in ticket:
            ticket["description"] = rng.choice(LISTS["notes"])
    if isinstance(config.get("ticket_counter"), int):
        config["ticket_counter"] += rng.randint(0, 40)


TOOLBOX = toolbox(
    read_class("tickets"),
    _vary,
    {"ticket": _ticket, "open": _open, "priority": _priority, "status": _status},
)
