"""Groups in lockstep: determinism in any batch, failures that stay apart, memory that is freed."""

from collections.abc import Iterator, Sequence
from itertools import count

import pytest

from producers.environments.port import Environment
from producers.environments.workbench.source import WorkbenchSource
from producers.rollouts.attempt import AttemptResult
from producers.rollouts.group import GroupOutcome, GroupSpec, run_groups
from producers.rollouts.policy import Completion, Prompt
from producers.rollouts.scripted import PERFECT, ScriptedPolicy
from schemas.rollouts import FailureReason
from schemas.task import TaskDefinition

SOURCE = WorkbenchSource(train=24, heldout=0)
TASKS = tuple(SOURCE.tasks("train"))


def _specs(tasks: Sequence[TaskDefinition] = TASKS, k: int = 8) -> list[GroupSpec]:
    return [GroupSpec(f"group-{task.task}", task, k, seed=3) for task in tasks]


def _clock() -> float:
    return 0.0


def _by_group(outcomes: Iterator[GroupOutcome]) -> dict[str, tuple[AttemptResult, ...]]:
    return {outcome.spec.group: outcome.attempts for outcome in outcomes}


class _Watched(ScriptedPolicy):
    """Notes who is alive and how large batches get; breaks at a batch number."""

    def __init__(self, breaks_at: int = -1, short: bool = False) -> None:
        super().__init__()
        self.alive: set[str] = set()
        self.largest = 0
        self._batches = count()
        self._breaks_at = breaks_at
        self._short = short

    def complete(self, prompts: Sequence[Prompt]) -> Sequence[Completion]:
        self.alive |= {prompt.attempt for prompt in prompts}
        self.largest = max(self.largest, len(prompts))
        if next(self._batches) == self._breaks_at:
            raise RuntimeError("the policy's server is gone")
        return super().complete(prompts)[1 if self._short else 0 :]

    def finish(self, attempts: Sequence[str]) -> None:
        self.alive -= set(attempts)


class _Faulty:
    """The workbench, with an environment that raises for one task."""

    name = "workbench"

    def __init__(self, bad: str) -> None:
        self._bad = bad

    def tasks(self, split: str) -> Iterator[TaskDefinition]:
        return SOURCE.tasks(split)

    def reset(self, task: TaskDefinition) -> Environment:
        if task.task == self._bad:
            raise OSError("no room for another world")
        return SOURCE.reset(task)


def test_outcomes_follow_from_seed_and_task_whatever_the_batch_and_the_company() -> None:
    policy = ScriptedPolicy(version=2)
    together = _by_group(run_groups(policy, SOURCE, _specs(), clock=_clock))
    for batch in (1, 7, 1000):
        assert _by_group(run_groups(policy, SOURCE, list(reversed(_specs())), batch=batch, clock=_clock)) == together
    for spec in _specs()[:6]:
        assert _by_group(run_groups(policy, SOURCE, [spec], clock=_clock))[spec.group] == together[spec.group]


def test_another_run_seed_gives_other_outcomes() -> None:
    policy = ScriptedPolicy(version=2)
    one = _by_group(run_groups(policy, SOURCE, _specs(), clock=_clock))
    other = [GroupSpec(spec.group, spec.task, spec.k, seed=4) for spec in _specs()]
    assert _by_group(run_groups(policy, SOURCE, other, clock=_clock)) != one


def test_every_group_comes_once_with_its_attempts_in_order() -> None:
    outcomes = list(run_groups(ScriptedPolicy(), SOURCE, _specs(), batch=5, clock=_clock))
    assert sorted(outcome.spec.group for outcome in outcomes) == sorted(spec.group for spec in _specs())
    assert all([attempt.attempt for attempt in outcome.attempts] == list(range(8)) for outcome in outcomes)


def test_a_broken_environment_fails_its_own_slots_and_no_others() -> None:
    bad = TASKS[5].task
    healthy = _by_group(run_groups(ScriptedPolicy(), SOURCE, _specs(), clock=_clock))
    broken = _by_group(run_groups(ScriptedPolicy(), _Faulty(bad), _specs(), clock=_clock))
    failed = broken.pop(f"group-{bad}")
    assert {attempt.failure for attempt in failed} == {FailureReason.ENVIRONMENT}
    assert all(attempt.progress is None for attempt in failed)
    healthy.pop(f"group-{bad}")
    assert broken == healthy


def test_a_group_whose_slots_all_failed_has_no_mean_and_one_failed_slot_moves_none() -> None:
    outcome = next(iter(run_groups(ScriptedPolicy(), _Faulty(TASKS[0].task), _specs(TASKS[:1]), clock=_clock)))
    assert outcome.mean_progress is None


def test_a_policy_that_raises_or_answers_short_fails_its_batch_only() -> None:
    outcomes = list(run_groups(_Watched(breaks_at=0), SOURCE, _specs(TASKS[:4], k=4), batch=4, clock=_clock))
    reasons = [{attempt.failure for attempt in outcome.attempts} for outcome in outcomes]
    assert reasons == [{FailureReason.POLICY}, {None}, {None}, {None}]
    short = list(run_groups(_Watched(short=True), SOURCE, _specs(TASKS[:1], k=4), clock=_clock))
    assert {attempt.failure for attempt in short[0].attempts} == {FailureReason.POLICY}


def test_batches_are_bounded_and_every_attempt_is_finished() -> None:
    policy = _Watched()
    list(run_groups(policy, SOURCE, _specs(), batch=10, clock=_clock))
    assert policy.largest == 10 and not policy.alive


def test_a_perfect_player_passes_every_turn_in_both_styles() -> None:
    for per_call in (False, True):
        for outcome in run_groups(ScriptedPolicy(PERFECT, per_call), SOURCE, _specs(k=2), clock=_clock):
            assert outcome.mean_progress == 1.0


def test_groups_need_different_ids_and_a_batch_room_for_one() -> None:
    with pytest.raises(ValueError, match="different ids"):
        list(run_groups(ScriptedPolicy(), SOURCE, _specs(TASKS[:1]) * 2))
    with pytest.raises(ValueError, match="at least one"):
        list(run_groups(ScriptedPolicy(), SOURCE, _specs(TASKS[:1]), batch=0))
