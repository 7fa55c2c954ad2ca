"""What a worker holds between two rebalances, and the gate that keeps agents from acting on anything older.

The group protocol is eager: an assignment names everything a worker has, so the session is rebuilt from the seals each
time. An agent takes a session, and after each wait asks `Gate.live` before it goes on: a worker that was paused and
wakes finds its session gone and acknowledges nothing.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streams.measure.state import MeasureState
from streams.seals.skim import RECENT
from streams.select.fold import PlacedSeed, SelectState


@dataclass(slots=True)
class MeasurePosition:
    """A partition of `rods.rollouts`. sealed: offsets below it are covered by seals that the broker acknowledged.

    pending: delivered and not yet covered. stopped: a schema that this reader does not know ended the partition here.
    """

    state: MeasureState
    sealed: int
    pending: list[Any] = field(default_factory=list)
    stopped: bool = False

    def covered(self, end: int) -> list[Any]:
        """The pending events below an offset, which are pending no longer."""
        covered = [event for event in self.pending if event.message.offset < end]
        self.pending = [event for event in self.pending if event.message.offset >= end]
        return covered


@dataclass(slots=True)
class SelectPosition:
    """`rods.seals`. recovered: offsets below it were folded before the session began; seeds: those of each selection
    among them, to be written again where its offset is delivered and so was never committed. latest: those of the
    newest selections whose offset is committed, `RECENT` of them at most. They are written again at the start: the
    agent acknowledges a selection after its seeds, but the framework also commits past the first offset where it has
    committed nothing, and the group's offsets can be set by anybody. A selection waits for its seeds only while the
    worker that has read it lives, so that more than a few wait for theirs where as many workers died in a row."""

    state: SelectState
    recovered: int
    seeds: dict[int, tuple[PlacedSeed, ...]]
    latest: tuple[PlacedSeed, ...] = ()
    stopped: bool = False

    @classmethod
    def after(cls, state: SelectState, seeds: Mapping[int, tuple[PlacedSeed, ...]], committed: int) -> "SelectPosition":
        """state, seeds: what the log says up to now. committed: the next offset of the group."""
        kept = {offset: planted for offset, planted in seeds.items() if offset >= committed}
        recent = sorted(seeds.keys() - kept.keys())[-RECENT:]
        return cls(state, state.next_offset, kept, tuple(seed for offset in recent for seed in seeds[offset]))


@dataclass(slots=True)
class Session:
    """One assignment. generation: the consumer group's, as Faust stamps it on messages."""

    generation: int
    measure: dict[int, MeasurePosition]
    select: SelectPosition | None


class Gate:
    """Closed while a rebalance is on; open with one session."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._ready = asyncio.Event()
        self._session: Session | None = None

    def close(self) -> None:
        self._ready.clear()
        self._session = None

    def open(self, session: Session) -> None:
        self._session = session
        self._ready.set()

    @property
    def current(self) -> Session | None:
        """The open session; None while a rebalance is on."""
        return self._session

    def live(self, session: Session) -> bool:
        """Whether the session is still the worker's."""
        return self._session is session and session.generation == self._app.consumer_generation_id

    async def session(self, generation: int) -> Session | None:
        """The session that a message of this generation belongs to, once it is open; None for an older message."""
        while self._session is None:
            await self._ready.wait()
        session = self._session
        return session if session.generation == generation and self.live(session) else None
