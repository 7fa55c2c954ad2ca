"""What a streams worker under test holds of its group, told by itself in a file that changes with each assignment."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from streams.service.session import Gate


class Holding(NamedTuple):
    """generation: the consumer group's. partitions: of `rods.rollouts`, with their state rebuilt."""

    pid: int
    generation: int
    partitions: frozenset[int]


def tell(file: Path) -> None:
    """Makes this process write down what it holds; nothing stands there while a rebalance is on."""
    opened, closed = Gate.open, Gate.close

    def close(self: Gate) -> None:
        file.unlink(missing_ok=True)
        closed(self)

    def open_(self: Gate, session: Any) -> None:
        opened(self, session)
        written = file.with_suffix(".writing")
        written.write_text(json.dumps([os.getpid(), session.generation, sorted(session.measure)]))
        written.replace(file)

    file.unlink(missing_ok=True)
    Gate.open, Gate.close = open_, close  # type: ignore[method-assign]


def held(file: Path, pid: int | None) -> Holding | None:
    """What the process with this id, whose file it is, holds now; None during a rebalance and where there is none."""
    try:
        teller, generation, partitions = json.loads(file.read_text())
    except FileNotFoundError:
        return None
    return Holding(teller, generation, frozenset(partitions)) if teller == pid else None


def share(holdings: Sequence[Holding | None], partitions: int) -> bool:
    """Whether each holds a part, in one generation, and all of them together every partition once."""
    parts = [holding for holding in holdings if holding is not None and holding.partitions]
    whole = sorted(number for part in parts for number in part.partitions)
    return len(parts) == len(holdings) and len({p.generation for p in parts}) == 1 and whole == list(range(partitions))
