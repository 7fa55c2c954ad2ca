"""The state of the pool: frozen values that share structure, so that a boundary can keep the one it was cut from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from schemas.pool import BoundaryOpened, PoolMaterialized
from schemas.task import TaskDefinition
from streams.measure.grown import Grown


@dataclass(frozen=True, slots=True)
class Member:
    """An active task.

    seed: the seed it came from, empty for an original.
    since: the boundary that brought it in.
    """

    task: str
    original: bool
    seed: str
    since: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A verified variant that waits. content: digest of what it is, apart from its id."""

    task: str
    seed: str
    epoch: int
    step: int
    rank: int
    content: str

    @property
    def order(self) -> tuple[int, int, int, str]:
        """The queue's order: first selected, first in."""
        return (self.epoch, self.step, self.rank, self.task)


@dataclass(frozen=True, slots=True)
class Retired:
    """A former member.

    since: the boundary that retired it.
    probed: the last epoch that probed it, or `since`.
    """

    task: str
    rule: str
    since: int
    probed: int
    original: bool
    seed: str


@dataclass(frozen=True, slots=True)
class PoolState:
    """Everything `rods.pool` says so far.

    next_offset: the offset the fold expects next.
    generation: the newest learner's.
    definitions: every task known.
    contents: what each of them is, as a digest.
    heldout: registered, never members, in order.
    settled: seed to outcome; the first settlement counts.
    operated: the ids of an operator's decisions; pinned tasks stay, banned ones leave for good, dismissed ones leave at
        the next boundary.
    cut: the state as the open boundary found it, None where none is open.
    materialized: the last boundary's result.
    materialized_offset: one past it; requests carry it as `pool_offset`.
    """

    next_offset: int = 0
    generation: int = 0
    definitions: Mapping[str, TaskDefinition] = field(default_factory=Grown)
    contents: Mapping[str, str] = field(default_factory=Grown)
    heldout: Mapping[str, None] = field(default_factory=Grown)
    members: Mapping[str, Member] = field(default_factory=Grown)
    candidates: Mapping[str, Candidate] = field(default_factory=dict)
    retired: Mapping[str, Retired] = field(default_factory=dict)
    settled: Mapping[str, str] = field(default_factory=Grown)
    operated: frozenset[str] = frozenset()
    pinned: frozenset[str] = frozenset()
    banned: frozenset[str] = frozenset()
    dismissed: frozenset[str] = frozenset()
    boundary: BoundaryOpened | None = None
    cut: "PoolState | None" = None
    materialized: PoolMaterialized | None = None
    materialized_offset: int = 0

    @property
    def epoch(self) -> int:
        """The epoch whose boundary made this pool; -1 before the first."""
        return self.materialized.epoch if self.materialized else -1

    @property
    def version(self) -> int:
        """-1 before the first pool."""
        return self.materialized.version if self.materialized else -1

    @property
    def digest(self) -> str:
        """Empty before the first pool."""
        return self.materialized.digest if self.materialized else ""
