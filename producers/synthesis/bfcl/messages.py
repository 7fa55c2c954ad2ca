"""MessageAPI: a workspace of users with ids, contacts and direct messages."""

from random import Random
from typing import Any

from producers.synthesis.bfcl.words import LISTS
from producers.synthesis.catalogue import Arguments, Function, Sketch, Toolbox
from producers.synthesis.plan import Argument

OWNER = "MessageAPI"
_USERS = {"Alice": "USR001", "Bob": "USR002", "Catherine": "USR003", "Daniel": "USR004"}
_INBOX = (
    {"USR002": "My name is Alice. I want to connect."},
    {"USR003": "Could you upload the file?"},
    {"USR004": "Could you upload the file?"},
)


def _users(world: Sketch) -> dict[str, str]:
    users: dict[str, str] = world.state[OWNER].setdefault("user_map", dict(_USERS))
    return users


def _inbox(world: Sketch) -> list[dict[str, str]]:
    inbox: list[dict[str, str]] = world.state[OWNER].setdefault("inbox", [dict(item) for item in _INBOX])
    return inbox


def _receiver(world: Sketch, rng: Random) -> Argument:
    for function in ("add_contact", "get_user_id"):
        known = world.latest(function, "user_id", within_turn=True)
        if known is not None:
            return known
    return rng.choice(sorted(_users(world).values()))


def _send(world: Sketch, rng: Random) -> Arguments | None:
    return {"receiver_id": _receiver(world, rng), "message": rng.choice(LISTS["notes"])}


def _send_effect(world: Sketch, arguments: Arguments) -> None:
    world.notes["sent"] = arguments["receiver_id"]


def _delete(world: Sketch, rng: Random) -> Arguments | None:
    known = [next(iter(message)) for message in _inbox(world)]
    last = world.notes.get("sent")
    if last is not None and not world.used("delete_message", receiver_id=last):
        return {"receiver_id": last}
    free = [user for user in known if not world.used("delete_message", receiver_id=user)]
    return {"receiver_id": rng.choice(free)} if free else None


def _person(world: Sketch, rng: Random) -> Arguments | None:
    return {"user": rng.choice(sorted(_users(world)))}


def _login(world: Sketch, rng: Random) -> Arguments | None:
    known = world.latest("get_user_id", "user_id", within_turn=True)
    if world.used("message_login"):
        return None
    return {"user_id": known if known is not None else rng.choice(sorted(_users(world).values()))}


def _contact(world: Sketch, rng: Random) -> Arguments | None:
    free = [
        name for name in LISTS["people"] if name not in _users(world) and not world.used("add_contact", user_name=name)
    ]
    return {"user_name": rng.choice(free)} if free else None


def _search(world: Sketch, rng: Random) -> Arguments | None:
    texts = [next(iter(message.values())) for message in _inbox(world)]
    present = [word for text in texts for word in str(text).split() if word.isalpha() and len(word) > 3]
    return {"keyword": rng.choice(present or LISTS["keywords"])}


FUNCTIONS = {
    "list_users": Function(("show me everybody in this workspace",)),
    "get_user_id": Function(
        ("look up the workspace identifier of {user}", "get me the identifier that belongs to {user}"), _person
    ),
    "message_login": Function(("sign me in to the workspace as {user_id}",), _login),
    "message_get_login_status": Function(("check whether I am signed in to the workspace",)),
    "send_message": Function(
        ("send {message} to {receiver_id}", "drop {receiver_id} a line saying {message}"), _send, _send_effect
    ),
    "delete_message": Function(
        ("take back the latest note to {receiver_id}", "erase what was last sent to {receiver_id}"), _delete
    ),
    "view_messages_sent": Function(("show me everything I have sent so far", "go over all the notes I sent")),
    "add_contact": Function(("enter {user_name} as a new contact", "register {user_name} among my contacts"), _contact),
    "search_messages": Function(("search my notes for {keyword}", "look for notes that contain {keyword}"), _search),
    "get_message_stats": Function(("sum up my messaging figures",)),
}
CHAINS = (
    ("get_user_id", "send_message"), ("add_contact", "send_message"), ("message_login", "send_message"),
    ("send_message", "view_messages_sent"), ("get_user_id", "message_login", "send_message"),
    ("message_login", "view_messages_sent"),
)  # fmt: skip
GOALS = ("the team's weekly catch-up", "the onboarding round", "the shift change")


def vary(config: dict[str, Any], rng: Random) -> None:
    """Rewrites what the inbox holds; people and their ids stay."""
    inbox = config.get("inbox")
    if isinstance(inbox, list):
        config["inbox"] = [{next(iter(message)): rng.choice(LISTS["notes"])} for message in inbox if message]
    config["random_seed"] = rng.randrange(1000, 999999)


TOOLBOX = Toolbox(FUNCTIONS, CHAINS, vary, GOALS)
