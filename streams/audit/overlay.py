"""Other rules over the recorded ones: what can be decided anew on rollouts that are as they are. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from schemas.rules import Rules
from streams.audit.errors import AuditError, InvalidRuleError

REDECIDED: Mapping[str, frozenset[str]] = {
    "measure": frozenset({"window", "alpha_low", "alpha_high", "min_variance"}),
    "select": frozenset({"rank_by", "quota", "cooldown_steps"}),
    "pool": frozenset(
        {
            "inject_share",
            "p_max",
            "retire",
            "burn_in",
            "drift_low",
            "drift_high",
            "patience",
            "protect_originals",
        }
    ),
}
"""Everything else shapes the rollouts or the variants themselves, which no log can tell."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """Assignments by group and name; ``curriculum`` has the group ``""``."""

    assignments: tuple[tuple[str, str, str], ...] = ()

    @classmethod
    def parse(cls, texts: Sequence[str]) -> "Overlay":
        """From texts such as ``measure.alpha_low=0.3``. Raises AuditError."""
        return cls(tuple(_assignment(text) for text in texts))

    def text(self, rules: str) -> str:
        """The rules with the assignments taken over, as canonical JSON; without any, the text itself."""
        return _overlaid(rules, self.assignments) if self.assignments else rules


@lru_cache(maxsize=64)
def _overlaid(text: str, assignments: tuple[tuple[str, str, str], ...]) -> str:
    document: dict[str, Any] = Rules.parse(text).model_dump(mode="json")
    for group, name, value in assignments:
        (document[group] if group else document)[name] = value
    try:
        return Rules.model_validate(document).canonical()
    except ValidationError as error:
        raise InvalidRuleError(error) from error


def _assignment(text: str) -> tuple[str, str, str]:
    name, equals, value = text.removeprefix("rules.").partition("=")
    group, dot, field = name.partition(".")
    if not equals:
        raise AuditError(f"a setting is given as name=value, as in measure.alpha_low=0.3, not {text[:80]!r}")
    if name == "curriculum":
        return "", name, value
    if not dot or field not in REDECIDED.get(group, frozenset()):
        known = ", ".join(f"{group}.{field}" for group in REDECIDED for field in sorted(REDECIDED[group]))
        shaping = f"{name} cannot be tried out on recorded rollouts, which it would have changed; what can"
        wrong = shaping if _exists(name) else f"there is no setting {name[:80]!r}; what can be tried out"
        raise AuditError(f"{wrong}: {known}, curriculum")
    return group, field, value


def _exists(name: str) -> bool:
    """Whether the rules have such a setting; a group of settings does not count as one."""
    fields: Mapping[str, Any] = Rules.model_fields
    for part in name.split("."):
        if part not in fields:
            return False
        fields = getattr(fields[part].annotation, "model_fields", {})
    return not fields
