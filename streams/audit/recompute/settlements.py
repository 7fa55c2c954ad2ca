"""Settlements of seeds against what they settle: the seed as it was selected, and the variants before them.

What a synthesis worker made of a seed no replay can recompute. But a settlement that names another step than its
seed's, more variants than the log holds, or an outcome that is not theirs, is not what any worker or learner writes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from schemas.pool import SeedSettled, Settlement, VariantVerified
from schemas.seals import BoundarySeedSelected
from schemas.topics import Topic
from streams.audit.compare.divergence import Divergence, Stage, shown
from streams.audit.load.source import LogSource


class _Counted(NamedTuple):
    """A settlement that counts. written: variants of its seed before it."""

    offset: int
    event: SeedSettled
    written: int


@dataclass(slots=True)
class Settlements:
    """Takes variants and the settlements that count in the order of `rods.pool`."""

    source: LogSource
    _written: Counter[str] = field(default_factory=Counter)
    _counted: dict[str, _Counted] = field(default_factory=dict)

    def variant(self, event: VariantVerified) -> None:
        """Takes a variant, whether or not the pool accepts it."""
        self._written[event.seed] += 1

    def settled(self, offset: int, event: SeedSettled) -> None:
        """Takes a settlement, the first of its seed."""
        self._counted[event.seed] = _Counted(offset, event, self._written.pop(event.seed, 0))

    def divergences(self, seeds: Iterable[BoundarySeedSelected]) -> Iterator[Divergence]:
        """Settlements that are not those of the selected seed; one of a seed that nobody selected is ignored."""
        for seed in seeds:
            counted = self._counted.get(seed.seed)
            if counted is None:
                continue
            for path, value in _expected(seed, counted).items():
                if (recorded := getattr(counted.event, path)) != value:
                    yield self._divergence(seed, counted, path, recorded, value)
                    break

    def _divergence(
        self, seed: BoundarySeedSelected, counted: _Counted, path: str, recorded: object, value: object
    ) -> Divergence:
        return Divergence(
            Stage.VARIANT,
            seed.epoch,
            seed.step,
            self.source.place(Topic.POOL, 0, counted.offset),
            f"the settlement of seed {seed.seed}",
            path,
            shown(recorded),
            shown(value),
            task=seed.task,
            evidence=(f"{counted.written} variants of the seed stand before it",),
        )


def _expected(seed: BoundarySeedSelected, counted: _Counted) -> dict[str, object]:
    """The fields that follow. Only a learner, which has a generation, lets a seed expire; it counts no variants."""
    expired = counted.event.generation > 0
    variants = 0 if expired else max(0, min(counted.event.variants, counted.written))
    done = Settlement.DONE if variants else Settlement.FAILED
    outcome = Settlement.EXPIRED if expired else done
    return {"epoch": seed.epoch, "step": seed.step, "variants": variants, "outcome": outcome.value}
