"""The four simulators: plain objects whose public attributes are their state and whose methods are their tools.

A method that changes something returns "done" and always changes the state; one that reads returns what it read.
What cannot be done raises `ToolRefusal` with one of a few fixed sentences. Arguments arrive already checked against
`tools.TOOLS`, so that a method sees only values of the right kind.
"""

from collections.abc import Mapping
from typing import Any

from producers.environments.workbench.entities import LARGEST, Kind, Value, kind_of, show

DONE = "done"
EMPTY = "empty"
REFUSALS = (
    "no such file",
    "no such folder",
    "no such event",
    "no such person",
    "already there",
    "folder not empty",
    "folder full",
    "no change",
    "not enough money",
    "too much money",
    "no debt",
    "too many",
)
FOLDER_LIMIT = 8
LIST_LIMIT = 12


class ToolRefusal(Exception):  # noqa: N818 - a tool's answer, not a fault
    """A tool that could not do what was asked; its text is one of `REFUSALS`."""


def _check(holds: bool, refusal: str) -> None:
    if not holds:
        raise ToolRefusal(refusal)


def _listing(values: list[str]) -> str:
    return " ".join(map(show, sorted(values))) or EMPTY


class Files:
    """Folders of files; a file's name is unique among all folders, its content is one value."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self.folders: dict[str, dict[str, Value]] = {name: dict(files) for name, files in state["folders"].items()}

    def known(self, kind: Kind) -> list[str]:
        """The names of this kind that exist here."""
        if kind is Kind.FOLDER:
            return list(self.folders)
        return [file for files in self.folders.values() for file in files] if kind is Kind.FILE else []

    def _home(self, file: str) -> str:
        for folder, files in self.folders.items():
            if file in files:
                return folder
        raise ToolRefusal("no such file")

    def _room(self, folder: str) -> dict[str, Value]:
        _check(folder in self.folders, "no such folder")
        _check(len(self.folders[folder]) < FOLDER_LIMIT, "folder full")
        return self.folders[folder]

    def find(self, file: str) -> str:
        return show(self._home(file))

    def read(self, file: str) -> str:
        return show(self.folders[self._home(file)][file])

    def list_files(self, folder: str) -> str:
        _check(folder in self.folders, "no such folder")
        return _listing(list(self.folders[folder]))

    def create(self, file: str, folder: str, text: Value) -> str:
        _check(file not in self.known(Kind.FILE), "already there")
        self._room(folder)[file] = text
        return DONE

    def write(self, file: str, text: Value) -> str:
        home = self.folders[self._home(file)]
        _check(home[file] != text, "no change")
        home[file] = text
        return DONE

    def move(self, file: str, folder: str) -> str:
        home = self._home(file)
        _check(home != folder, "no change")
        self._room(folder)[file] = self.folders[home][file]
        del self.folders[home][file]
        return DONE

    def delete(self, file: str) -> str:
        del self.folders[self._home(file)][file]
        return DONE

    def new_folder(self, folder: str) -> str:
        _check(folder not in self.folders, "already there")
        self.folders[folder] = {}
        return DONE


class Calendar:
    """Events of one week: each has a day, an hour and guests in alphabetical order."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self.events: dict[str, dict[str, Any]] = {
            name: {"day": event["day"], "hour": event["hour"], "guests": list(event["guests"])}
            for name, event in state["events"].items()
        }

    def known(self, kind: Kind) -> list[str]:
        """The names of this kind that exist here."""
        return list(self.events) if kind is Kind.EVENT else []

    def _event(self, event: str) -> dict[str, Any]:
        _check(event in self.events, "no such event")
        return self.events[event]

    def _set(self, event: str, field: str, value: Value) -> str:
        found = self._event(event)
        _check(found[field] != value, "no change")
        found[field] = value
        return DONE

    def day_of(self, event: str) -> str:
        return show(self._event(event)["day"])

    def hour_of(self, event: str) -> str:
        return show(self._event(event)["hour"])

    def agenda(self, day: str) -> str:
        return _listing([name for name, event in self.events.items() if event["day"] == day])

    def add_event(self, event: str, day: str, hour: int) -> str:
        _check(event not in self.events, "already there")
        _check(len(self.events) < 2 * LIST_LIMIT, "too many")
        self.events[event] = {"day": day, "hour": hour, "guests": []}
        return DONE

    def set_day(self, event: str, day: str) -> str:
        return self._set(event, "day", day)

    def set_hour(self, event: str, hour: int) -> str:
        return self._set(event, "hour", hour)

    def invite(self, event: str, person: str) -> str:
        guests = self._event(event)["guests"]
        _check(person not in guests, "already there")
        guests.append(person)
        guests.sort()
        return DONE

    def cancel(self, event: str) -> str:
        self._event(event)
        del self.events[event]
        return DONE


class Wallet:
    """A balance, what is owed to whom, and what was paid to whom."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self.money: int = state["money"]
        self.debts: dict[str, int] = dict(state["debts"])
        self.paid: dict[str, int] = dict(state.get("paid", {}))

    def known(self, kind: Kind) -> list[str]:
        """The people that something is owed to."""
        return list(self.debts) if kind is Kind.PERSON else []

    def balance(self) -> str:
        return show(self.money)

    def debt(self, person: str) -> str:
        _check(person in self.debts, "no debt")
        return show(self.debts[person])

    def deposit(self, amount: int) -> str:
        _check(amount > 0, "no change")
        _check(self.money + amount <= LARGEST, "too much money")
        self.money += amount
        return DONE

    def pay(self, person: str, amount: int) -> str:
        _check(amount > 0, "no change")
        _check(amount <= self.money, "not enough money")
        self.money -= amount
        self.paid[person] = self.paid.get(person, 0) + amount
        return DONE

    def borrow(self, person: str, amount: int) -> str:
        _check(amount > 0, "no change")
        _check(max(self.money, self.debts.get(person, 0)) + amount <= LARGEST, "too much money")
        self.money += amount
        self.debts[person] = self.debts.get(person, 0) + amount
        return DONE


class Contacts:
    """People with a city and a boss, and the messages sent to them."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self.people: dict[str, dict[str, str]] = {name: dict(card) for name, card in state["people"].items()}
        self.sent: list[list[Value]] = [list(message) for message in state.get("sent", [])]

    def known(self, kind: Kind) -> list[str]:
        """The names of this kind that exist here."""
        return list(self.people) if kind is Kind.PERSON else []

    def _card(self, person: str) -> dict[str, str]:
        _check(person in self.people, "no such person")
        return self.people[person]

    def city_of(self, person: str) -> str:
        return show(self._card(person)["city"])

    def boss_of(self, person: str) -> str:
        return show(self._card(person)["boss"])

    def set_city(self, person: str, city: str) -> str:
        card = self._card(person)
        _check(card["city"] != city, "no change")
        card["city"] = city
        return DONE

    def set_boss(self, person: str, boss: str) -> str:
        card = self._card(person)
        _check(card["boss"] != boss, "no change")
        card["boss"] = boss
        return DONE

    def send(self, person: str, text: Value) -> str:
        self._card(person)
        _check(len(self.sent) < 10 * LIST_LIMIT, "too many")
        _check(kind_of(text) is not None, "no change")
        self.sent.append([person, text])
        return DONE

    def forget(self, person: str) -> str:
        self._card(person)
        del self.people[person]
        return DONE


Domain = Files | Calendar | Wallet | Contacts
DOMAINS: Mapping[str, type[Files] | type[Calendar] | type[Wallet] | type[Contacts]] = {
    "Calendar": Calendar,
    "Contacts": Contacts,
    "Files": Files,
    "Wallet": Wallet,
}
