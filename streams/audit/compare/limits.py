"""Why a run could not be made again, by name. Its decisions are recomputed from its facts all the same."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from schemas.pool import SeedSettled, Settlement
from schemas.seals import SealedGroup
from streams.audit.load.epochs import RunFacts


class LimitName(StrEnum):
    """Stable names, for scripts."""

    POLICY = "policy-not-deterministic"
    REVISION = "another-code-revision"
    PACKAGES = "other-package-versions"
    DIRTY = "uncommitted-code"
    SLOTS = "failed-slots"
    EXPIRED = "expired-seeds"
    TRAJECTORIES = "missing-trajectories"
    ROLLOUTS = "missing-rollouts"


class Limit(NamedTuple):
    """A reason, and what it rests on in one sentence."""

    name: LimitName
    detail: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """The code that audits: its revision, empty where unknown, and its packages' versions."""

    revision: str = ""
    packages: Mapping[str, str] | None = None


def limits_of(run: RunFacts, here: Provenance) -> list[Limit]:
    """What the run's own record of itself says against making it again here."""
    return [*_policy(run), *_revision(run, here), *_packages(run, here)]


def _policy(run: RunFacts) -> list[Limit]:
    models = sorted({opened.model_digest for opened in run.opened.values() if opened.model_digest})
    if not models and not any(published.sha256 for published in run.published.values()):
        return []
    digest = models[0][:12] if models else "unknown"
    detail = f"a model (sha256 {digest}) answered; its sampled tokens repeat on the same kind of machine at best"
    return [Limit(LimitName.POLICY, detail)]


def _revision(run: RunFacts, here: Provenance) -> list[Limit]:
    found = sorted({opened.code_revision for opened in run.opened.values()})
    limits = []
    if any(revision.endswith("-dirty") or not revision for revision in found):
        limits.append(Limit(LimitName.DIRTY, "the run's code was no committed revision"))
    if here.revision and found and found != [here.revision]:
        others = ", ".join(revision[:18] or "unknown" for revision in found)
        limits.append(Limit(LimitName.REVISION, f"the run's code is {others}, and this is {here.revision[:18]}"))
    return limits


def _packages(run: RunFacts, here: Provenance) -> list[Limit]:
    if here.packages is None or not run.opened:
        return []
    recorded = run.opened[max(run.opened)].packages
    other = [
        f"{name} {version} (here {here.packages.get(name, 'absent')})"
        for name, version in sorted(recorded.items())
        if here.packages.get(name) != version
    ]
    return [Limit(LimitName.PACKAGES, ", ".join(other))] if other else []


class Failures:
    """Counts what depended on time and on machines: failed slots and expired seeds."""

    def __init__(self) -> None:
        self._reasons: Counter[str] = Counter()
        self._expired = 0

    def group(self, group: SealedGroup) -> None:
        for reason in group.reasons if any(group.reasons) else ():
            if reason:
                self._reasons[reason] += 1

    def settled(self, event: SeedSettled) -> None:
        self._expired += event.outcome == Settlement.EXPIRED

    def limits(self) -> list[Limit]:
        found = []
        if self._reasons:
            counts = ", ".join(f"{count} {reason}" for reason, count in sorted(self._reasons.items()))
            found.append(Limit(LimitName.SLOTS, f"slots without a reward: {counts}"))
        if self._expired:
            found.append(Limit(LimitName.EXPIRED, f"{self._expired} seeds were settled by a deadline"))
        return found
