"""The initial state of a task: a few named things per simulator, drawn from the closed lists."""

from collections.abc import Mapping
from random import Random
from typing import Any

from producers.environments.workbench.entities import HOURS, NAMES, Kind, Value
from producers.environments.workbench.sample import LARGEST_DRAWN

FILES, FOLDERS, EVENTS = NAMES[Kind.FILE], NAMES[Kind.FOLDER], NAMES[Kind.EVENT]
PEOPLE, DAYS, CITIES = NAMES[Kind.PERSON], NAMES[Kind.DAY], NAMES[Kind.CITY]


def draw_state(classes: tuple[str, ...], extra: int, rng: Random) -> Mapping[str, Any]:
    """Class name to configuration, with `extra` further names per simulator beyond the usual handful."""
    return {name: _SCENES[name](extra, rng) for name in classes}


def _text(rng: Random) -> Value:
    pick = rng.random()
    if pick < 0.5:
        return rng.randrange(1, LARGEST_DRAWN)
    return rng.choice(PEOPLE if pick < 0.75 else DAYS if pick < 0.9 else CITIES)


def _files(extra: int, rng: Random) -> Mapping[str, Any]:
    names = rng.sample(FOLDERS, rng.randint(2, 3))
    folders: dict[str, dict[str, Value]] = {name: {} for name in names}
    for index, file in enumerate(rng.sample(FILES, rng.randint(3, 4) + extra)):
        folders[names[index % len(names)]][file] = _text(rng)
    return {"folders": folders}


def _calendar(extra: int, rng: Random) -> Mapping[str, Any]:
    events = rng.sample(EVENTS, rng.randint(2, 4) + extra)
    return {"events": {name: {"day": rng.choice(DAYS), "hour": rng.choice(HOURS), "guests": []} for name in events}}


def _wallet(extra: int, rng: Random) -> Mapping[str, Any]:
    people = rng.sample(PEOPLE, rng.randint(2, 3) + extra)
    debts = {person: rng.randrange(2, LARGEST_DRAWN) for person in people}
    return {"debts": debts, "money": rng.randrange(30, 60), "paid": {}}


def _contacts(extra: int, rng: Random) -> Mapping[str, Any]:
    people = rng.sample(PEOPLE, rng.randint(3, 4) + extra)
    cards = {person: {"boss": rng.choice(PEOPLE), "city": rng.choice(CITIES)} for person in people}
    return {"people": cards, "sent": []}


_SCENES = {"Files": _files, "Calendar": _calendar, "Wallet": _wallet, "Contacts": _contacts}
