"""One owner of the bound on work in flight and of the bound on staleness."""

from dataclasses import dataclass, field

from schemas.rules import Rules

MAX_GROUPS_PER_STEP = 2048


@dataclass(slots=True)
class InFlight:
    """Groups asked for and not yet sealed, and how old a policy may be to be trained on.

    Invariant: open groups never exceed steps_in_flight * MAX_GROUPS_PER_STEP; a slot is admitted only if its policy
    version is at most `max_staleness` behind the version that trains, and not ahead of it.
    """

    steps_in_flight: int
    max_staleness: int
    open_steps: dict[int, int] = field(default_factory=dict)

    @classmethod
    def under(cls, rules: Rules) -> "InFlight":
        return cls(rules.learner.steps_in_flight, rules.learner.max_staleness)

    def open(self, step: int, groups: int) -> None:
        """Takes a step's groups in flight. Raises RuntimeError past a bound."""
        if groups > MAX_GROUPS_PER_STEP:
            raise RuntimeError(f"step {step} has {groups} groups, more than {MAX_GROUPS_PER_STEP}")
        if len(self.open_steps) >= self.steps_in_flight:
            raise RuntimeError(f"step {step} would exceed {self.steps_in_flight} steps in flight")
        self.open_steps[step] = groups

    def sealed(self, step: int) -> None:
        """The step's groups are decided."""
        self.open_steps.pop(step, None)

    @property
    def groups(self) -> int:
        """Groups in flight."""
        return sum(self.open_steps.values())

    def fresh(self, policy_version: int, current: int) -> bool:
        """Whether an attempt sampled by `policy_version` may train version `current`."""
        return 0 <= current - policy_version <= self.max_staleness
