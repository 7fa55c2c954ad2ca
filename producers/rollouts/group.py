"""Groups of attempts, in lockstep: every round, one batch of all live attempts of all groups goes to the policy.

Attempts start as others end, so that the batch stays full and memory bounded. What an attempt does follows from its
task and its seed, never from its neighbours. A fault in one attempt's environment leaves the others alone; a fault of
the policy fails the attempts of that batch.
"""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from producers.environments.port import TaskSource
from producers.rollouts.attempt import Attempt, AttemptResult, Clock, Limits, attempt_seed
from producers.rollouts.policy import Completion, Policy
from schemas.rollouts import FailureReason
from schemas.task import TaskDefinition

BATCH = 256


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """K attempts at a task. group: unique among the groups run together. seed: the run's."""

    group: str
    task: TaskDefinition
    k: int
    seed: int
    temperature: float = 1.0


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    """A group's attempts, by number."""

    spec: GroupSpec
    attempts: tuple[AttemptResult, ...]

    @property
    def mean_progress(self) -> float | None:
        """Mean over live attempts, for display; None when no attempt is live."""
        live = [attempt.turns_passed for attempt in self.attempts if attempt.failure is None]
        return sum(live) / (len(live) * self.spec.task.turns_total) if live else None


class PolicyFault(RuntimeError):  # noqa: N818 - a fault of the policy, which fails the slots of a batch
    """The policy did not answer the batch it was given."""


def run_groups(
    policy: Policy,
    source: TaskSource,
    requests: Sequence[GroupSpec],
    limits: Limits | None = None,
    batch: int = BATCH,
    clock: Clock = time.monotonic,
) -> Iterator[GroupOutcome]:
    """Runs the groups and yields each as its last attempt ends.

    batch: attempts alive at once, at most. clock: seconds, for latencies and the time limit alone.
    """
    runner = _Runner(policy, source, limits or Limits(), batch, clock)
    waiting = deque((spec, number) for spec in requests for number in range(spec.k))
    open_groups = {spec.group: _OpenGroup(spec) for spec in requests}
    if len(open_groups) < len(requests):
        raise ValueError("groups that run together need different ids")
    while waiting or runner.live:
        while waiting and len(runner.live) < batch:
            runner.start(*waiting.popleft())
        for attempt, spec in runner.round():
            group = open_groups[spec.group]
            group.results.append(attempt.result())
            if len(group.results) == spec.k:
                yield open_groups.pop(spec.group).outcome()


class _OpenGroup:
    def __init__(self, spec: GroupSpec) -> None:
        self.spec = spec
        self.results: list[AttemptResult] = []

    def outcome(self) -> GroupOutcome:
        return GroupOutcome(self.spec, tuple(sorted(self.results, key=lambda result: result.attempt)))


class _Runner:
    """The live attempts; each `round` advances all by one message and takes out those that ended."""

    def __init__(self, policy: Policy, source: TaskSource, limits: Limits, batch: int, clock: Clock) -> None:
        if batch < 1:
            raise ValueError("a batch holds at least one attempt")
        self.live: list[tuple[Attempt, GroupSpec]] = []
        self._policy = policy
        self._source = source
        self._limits = limits
        self._clock = clock

    def start(self, spec: GroupSpec, number: int) -> None:
        seed = attempt_seed(spec.seed, spec.group, number)
        attempt = Attempt(f"{spec.group}/{number}", number, spec.task, seed, spec.temperature, self._limits)
        attempt.start(self._source, self._clock())
        self.live.append((attempt, spec))

    def round(self) -> list[tuple[Attempt, GroupSpec]]:
        running = [attempt for attempt, _ in self.live if not attempt.done]
        if running:
            self._advance(running)
        ended = [pair for pair in self.live if pair[0].done]
        self.live = [pair for pair in self.live if not pair[0].done]
        self._policy.finish([attempt.key for attempt, _ in ended])
        return ended

    def _advance(self, running: Sequence[Attempt]) -> None:
        try:
            completions = self._complete(running)
        except Exception as error:  # noqa: BLE001 - whatever a policy raises fails its batch, not the worker
            for attempt in running:
                attempt.fail(FailureReason.POLICY, error, self._clock())
            return
        version = self._policy.version
        for attempt, completion in zip(running, completions, strict=True):
            attempt.accept(completion, version, self._clock())

    def _complete(self, running: Sequence[Attempt]) -> Sequence[Completion]:
        completions = self._policy.complete([attempt.prompt() for attempt in running])
        if len(completions) != len(running):
            raise PolicyFault(f"{len(completions)} completions for {len(running)} prompts")
        return completions
