"""Which faults hit a run, and when: seeded, so that a schedule that finds something is run again by its number. Pure.

A fault fires when the log has shown its nth event of a kind, not at a time: the same schedule hits the same place on a
slow machine.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

SERVICES = ("streams", "rollouts", "synthesis", "archive")
WORKERS = {"streams": 2, "rollouts": 2, "synthesis": 2, "archive": 1}
REPEAT, RERUN, HOLD_BACK = "repeat", "rerun", "hold back"
SHORT, LONG = 1.0, 8.0
"""Pauses in seconds: within the session timeout of the consumer groups, and beyond it."""


class Action(StrEnum):
    """What happens. USURP: the learner is paused, a second one takes over, and the first wakes.

    BROKER: ended as by a crash and started again over its data; a broker that keeps everything in memory is paused.
    """

    KILL = "kill"
    PAUSE = "pause"
    USURP = "usurp"
    BROKER = "broker"


@dataclass(frozen=True, slots=True)
class Fault:
    """worker: the number of the process among those of its service. seconds: of a pause."""

    kind: str
    nth: int
    action: Action
    service: str = ""
    worker: int = 0
    seconds: float = 0.0

    @property
    def process(self) -> str:
        """The name of the process that it hits; empty where it hits none of a service."""
        several = WORKERS.get(self.service, 1) > 1
        return f"{self.service}-{self.worker + 1}" if several else self.service

    @property
    def blow(self) -> str:
        """What kind of fault it is."""
        return f"{self.action} {self.service}".strip()

    def __str__(self) -> str:
        whom = f" {self.service}-{self.worker + 1}" if self.service else ""
        pause = f" for {self.seconds:g} s" if self.seconds else ""
        return f"{self.action}{whom}{pause} at {self.kind} {self.nth}"


@dataclass(frozen=True, slots=True)
class Schedule:
    """repeats, reruns: shares of the results that come again as they are, or with other slots by another execution.

    delay: up to how many seconds later they come; some of them after the barrier of their step. held: steps of which
    some honest results come only behind their barrier.
    """

    seed: int
    faults: tuple[Fault, ...] = ()
    repeats: float = 0.0
    reruns: float = 0.0
    delay: float = 0.0
    held: tuple[int, ...] = ()

    @property
    def blows(self) -> set[str]:
        """The kinds of fault that it plans."""
        meddling = {REPEAT: self.repeats, RERUN: self.reruns, HOLD_BACK: self.held}
        return {fault.blow for fault in self.faults} | {name for name, planned in meddling.items() if planned}

    def __str__(self) -> str:
        held = f"; honest results of the steps {self.held} held back" if self.held else ""
        return f"schedule {self.seed} ({'; '.join(map(str, self.faults))}{held})"


HELD_BACK = Schedule(-2, (Fault("BarrierReached", 7, Action.KILL, "streams"),), 0.5, 0.5, 0.2, held=(2, 4))
"""Its deadline is what it waits for, so that its decisions are not those of the undisturbed run."""


_THEMES: tuple[tuple[tuple[Action, str, float], ...], ...] = (
    ((Action.KILL, "streams", 0.0), (Action.KILL, "streams", 0.0)),
    ((Action.PAUSE, "streams", LONG), (Action.KILL, "rollouts", 0.0)),
    ((Action.USURP, "", 2.0), (Action.KILL, "streams", 0.0)),
    ((Action.BROKER, "", 2.0), (Action.KILL, "archive", 0.0)),
    ((Action.KILL, "rollouts", 0.0), (Action.KILL, "synthesis", 0.0)),
    ((Action.PAUSE, "rollouts", LONG), (Action.PAUSE, "synthesis", LONG)),
    ((Action.KILL, "archive", 0.0), (Action.PAUSE, "archive", SHORT), (Action.PAUSE, "streams", SHORT)),
    ((Action.PAUSE, "streams", LONG), (Action.KILL, "streams", 0.0), (Action.USURP, "", 2.0)),
)
"""What a schedule has for certain, by its number; so that any eight in a row hold every kind of fault."""


def schedule(seed: int, events: Mapping[str, int]) -> Schedule:
    """The schedule of a number. events: how many of each kind an undisturbed run has."""
    draw = random.Random(f"faults-{seed}")
    themed = [_fault(draw, events, *theme) for theme in _THEMES[seed % len(_THEMES)]]
    free = [_any(draw, events) for _ in range(draw.randrange(2))]
    return Schedule(seed, (*themed, *free), draw.choice((0.1, 0.5)), draw.choice((0.1, 0.5)), draw.choice((0.2, 2.0)))


def _any(draw: random.Random, events: Mapping[str, int]) -> Fault:
    service = draw.choice(SERVICES)
    action = draw.choice((Action.KILL, Action.PAUSE))
    return _fault(draw, events, action, service, draw.choice((SHORT, LONG)) if action is Action.PAUSE else 0.0)


def _fault(draw: random.Random, events: Mapping[str, int], action: Action, service: str, seconds: float) -> Fault:
    """Not at the last events, behind which the run may be over; a learner takes a while to take over."""
    kind = draw.choice(sorted(events))
    share = Fraction(1, 2) if action is Action.USURP else Fraction(4, 5)
    nth = 1 + draw.randrange(max(1, int(events[kind] * share)))
    return Fault(kind, nth, action, service, draw.randrange(WORKERS.get(service, 1)), seconds)
