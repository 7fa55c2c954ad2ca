"""Where a recorded event differs from the one its causes lead to. Pure."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from schemas.codec import encode_like, plain_record
from schemas.envelope import Event

LONGEST_VALUE = 400
UNDECIDED = frozenset({"envelope", "generation", "offsets"})
"""Of a learner's decisions: who wrote them, when, and the offsets of its readers."""


class Stage(StrEnum):
    """What was recomputed, in the order of cause and effect within a step."""

    SETTINGS = "settings"
    MEASUREMENT = "measurement"
    SEAL = "seal"
    SELECTION = "selection"
    SEED = "seed"
    VARIANT = "variant"
    POOL = "pool"


_ORDER = {stage: number for number, stage in enumerate(Stage)}


class Difference(NamedTuple):
    """A field, by its path, and both its values as canonical JSON."""

    path: str
    recorded: str
    recomputed: str


@dataclass(frozen=True, slots=True)
class Divergence:
    """A recorded decision that its evidence does not lead to.

    place: where the recorded one is in the log, or should be.
    recorded, recomputed: canonical JSON, shortened; ``absent`` where there is none.
    evidence: places and groups that the recomputed one rests on.
    task: empty where it is about no single task.
    """

    stage: Stage
    epoch: int
    step: int
    place: str
    what: str
    path: str
    recorded: str
    recomputed: str
    task: str = ""
    evidence: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[int, int, int, str]:
        """Causes before effects."""
        return (self.epoch, self.step, _ORDER[self.stage], self.place)


ABSENT = "absent"


def difference(frame: bytes, event: Event, ignored: frozenset[str] = frozenset()) -> Difference | None:
    """The first field in which a recorded frame differs from a recomputed event of its kind, by the schema that wrote
    the frame; None where they agree. A digest comes last: it follows from the rest. ignored: fields at the top that
    decide nothing."""
    again = encode_like(event, frame)
    if again == frame:
        return None
    recorded, recomputed = plain_record(frame), plain_record(again)
    for name in ignored:
        recorded.pop(name, None)
        recomputed.pop(name, None)
    found = list(differences(recorded, recomputed))
    return next((one for one in found if one.path != "digest"), found[0] if found else None)


def differences(recorded: Any, recomputed: Any, path: str = "") -> Iterator[Difference]:
    """Every leaf in which two plain values differ."""
    if isinstance(recorded, dict) and isinstance(recomputed, dict):
        for name in dict.fromkeys((*recorded, *recomputed)) if recorded != recomputed else ():
            yield from differences(recorded.get(name), recomputed.get(name), f"{path}.{name}" if path else name)
    elif isinstance(recorded, list) and isinstance(recomputed, list) and len(recorded) == len(recomputed):
        for number, pair in enumerate(zip(recorded, recomputed, strict=True)):
            yield from differences(*pair, f"{path}[{number}]")
    elif recorded != recomputed:
        yield Difference(path, shown(recorded), shown(recomputed))


def shown(value: object) -> str:
    """A plain value as JSON of readable length."""
    text = json.dumps(_jsonable(value), sort_keys=True, separators=(",", ":"))
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}... ({len(text)} characters)"


def first_of(divergences: Sequence[Divergence]) -> Divergence | None:
    """The one that no other precedes."""
    return min(divergences, key=lambda divergence: divergence.order, default=None)


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    return value.hex() if isinstance(value, bytes) else value
