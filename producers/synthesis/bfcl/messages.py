"""MessageAPI: a workspace of users with ids, contacts and direct messages."""

from random import Random
from typing import Any

from producers.synthesis.bfcl.sketch import Sketch
from producers.synthesis.bfcl.table import read_class, toolbox
from producers.synthesis.bfcl.words import LISTS
from producers.synthesis.plan import Argument

OWNER = "MessageAPI"
_TABLE = read_class("messages")


def _users(world: Sketch) -> dict[str, str]:
    users: dict[str, str] = world.state[OWNER].setdefault("user_map", dict(_TABLE.maps["users"]))
    return users


def _inbox(world: Sketch) -> list[dict[str, str]]:
    given = [{user: text} for user, text in _TABLE.maps["inbox"].items()]
    inbox: list[dict[str, str]] = world.state[OWNER].setdefault("inbox", given)
    return inbox


def _receiver(world: Sketch, rng: Random) -> Argument:
    added = world.latest("add_contact", "user_id", within_turn=True)
    return added if added is not None else _account(world, rng)


def _account(world: Sketch, rng: Random) -> Argument:
    known = world.latest("get_user_id", "user_id", within_turn=True)
    return known if known is not None else rng.choice(sorted(_users(world).values()))


def _written_to(world: Sketch, rng: Random) -> Argument:
    last: Argument = world.notes.get("sent")
    if last is not None and not world.used("delete_message", receiver_id=last):
        return last
    known = [next(iter(message)) for message in _inbox(world)]
    free = [user for user in known if not world.used("delete_message", receiver_id=user)]
    return rng.choice(free) if free else None


def _person(world: Sketch, rng: Random) -> Argument:
    return rng.choice(sorted(_users(world)))


def _newcomer(world: Sketch, rng: Random) -> Argument:
    users = _users(world)
    free = [name for name in LISTS["people"] if name not in users and not world.used("add_contact", user_name=name)]
    return rng.choice(free) if free else None


def _keyword(world: Sketch, rng: Random) -> Argument:
    texts = [next(iter(message.values())) for message in _inbox(world)]
    present = [word for text in texts for word in str(text).split() if word.isalpha() and len(word) > 3]
    return rng.choice(present or LISTS["keywords"])


def _vary(config: dict[str, Any], rng: Random) -> None:
    """Rewrites what the inbox holds; people and their ids stay."""
    inbox = config.get("inbox")
    if isinstance(inbox, list):
        config["inbox"] = [{next(iter(message)): rng.choice(LISTS["notes"])} for message in inbox if message]


TOOLBOX = toolbox(
    _TABLE,
    _vary,
    {
        "receiver": _receiver, "account": _account, "written_to": _written_to, "person": _person,
        "newcomer": _newcomer, "keyword": _keyword,
    },
)  # fmt: skip
