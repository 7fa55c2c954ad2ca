"""Which figures of drift are worth a person's attention: limits, and what lies beyond them. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from schemas.seals import Zone
from streams.audit.drift.figures import DriftReport, EpochDrift
from streams.audit.errors import AuditError


@dataclass(frozen=True, slots=True)
class DriftLimits:
    """Beyond these a finding is raised. The conventional reading of PSI is 0.1 for a shift and 0.25 for a large one;
    the others are choices, to be set to what a run is meant to do."""

    psi: float = 0.25
    jensen_shannon: float = 0.40
    boundary_share_below: float = 0.20
    none_share: float = 0.05
    variant_share: float = 0.80
    variant_age: float = 10.0
    flip_share: float = 0.25
    category_share: float = 0.60
    depth_change: float = 1.0
    judge_pass_rate_below: float = 0.20

    def changed(self, assignment: str) -> "DriftLimits":
        """The limits with ``name=number`` taken over. Raises AuditError."""
        name, equals, number = assignment.partition("=")
        if not equals or name not in {field.name for field in fields(self)}:
            known = ", ".join(field.name for field in fields(self))
            raise AuditError(f"a limit is given as name=number, where name is one of {known}")
        try:
            value = float(number)
        except ValueError:
            raise AuditError(f"the limit {name} is a number, not {number[:40]!r}") from None
        return replace(self, **{name: value})


class Finding(NamedTuple):
    """A figure beyond its limit."""

    epoch: int
    limit: str
    value: float
    bound: float
    text: str


def findings(report: DriftReport, limits: DriftLimits) -> list[Finding]:
    """What lies beyond the limits, by epoch. An epoch without a figure raises nothing for it."""
    base = next(row for row in report.epochs if row.epoch == report.reference)
    return [finding for row in report.epochs for finding in _of(row, base, limits)]


def _of(row: EpochDrift, base: EpochDrift, limits: DriftLimits) -> Iterator[Finding]:
    against = f"against epoch {base.epoch}"
    for name, value, text in (
        ("psi", row.psi, f"population stability index of progress {against}"),
        ("jensen_shannon", row.jensen_shannon, f"Jensen-Shannon distance of progress {against}"),
        ("none_share", row.zone_share(Zone.NONE), "share of groups without a single live attempt so far"),
        ("variant_share", row.variant_share, "share of train groups of generated tasks"),
        ("variant_age", row.variant_age, "mean age of generated tasks, in epochs"),
        ("flip_share", row.flip_share, "share of visits whose verdict is not the one before"),
        ("category_share", _largest(row), "share of the largest category"),
        ("depth_change", _apart(row.depth, base.depth), f"change of the mean number of turns {against}"),
    ):
        if value is not None and value > (bound := getattr(limits, name)):
            yield Finding(row.epoch, name, value, bound, text)
    for name, value, text in (
        ("boundary_share_below", row.zone_share(Zone.BOUNDARY), "share of groups at the boundary"),
        ("judge_pass_rate_below", row.judge_pass_rate, "share of drafts that pass the critique"),
    ):
        if value is not None and value < (bound := getattr(limits, name)):
            yield Finding(row.epoch, name, value, bound, text)


def _largest(row: EpochDrift) -> float | None:
    return max(row.categories.values()) / row.groups if row.groups else None


def _apart(one: float | None, other: float | None) -> float | None:
    return abs(one - other) if one is not None and other is not None else None
