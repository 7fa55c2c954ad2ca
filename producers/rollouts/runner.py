"""The blocking half of a rollout worker: one policy, one task source, batches of groups, encoded results.

Everything here runs in the worker's thread. A fault of the policy or the environment is a failed slot.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from producers.environments.port import TaskSource
from producers.errors import PolicyUnavailableError
from producers.rollouts.attempt import Limits
from producers.rollouts.backlog import Assigned
from producers.rollouts.group import GroupSpec, run_groups
from producers.rollouts.policy import Policy
from producers.rollouts.recording import Recording, record, record_failure
from producers.rollouts.scripted import ScriptedPolicy
from schemas.rollouts import FailureReason
from schemas.rules import RolloutRules
from schemas.task import TaskDefinition

logger = logging.getLogger(__name__)

SCRIPTED = "scripted"
LOAD_TRIES = 3
LOAD_PAUSE_SECONDS = 1.0
PolicyOf = Callable[[RolloutRules], Policy]


@dataclass(frozen=True, slots=True)
class GroupTask:
    """A group and the definition it runs."""

    assigned: Assigned
    definition: TaskDefinition


@dataclass(frozen=True, slots=True)
class Delivery:
    """What one group came to, ready to be written."""

    assigned: Assigned
    recording: Recording


@dataclass(frozen=True, slots=True)
class Weights:
    """A policy version to run with; location and sha256 are empty for a policy without weights."""

    version: int
    location: str = ""
    sha256: str = ""


class GroupRunner:
    """Runs batches of groups with the policy that their rules and weights call for."""

    def __init__(self, source: TaskSource, policy_of: PolicyOf, attempts_at_once: int) -> None:
        self._source = source
        self._policy_of = policy_of
        self._attempts_at_once = attempts_at_once
        self._policy: Policy | None = None
        self._rules: RolloutRules | None = None
        self._weights: Weights | None = None

    def prepare(self, rules: RolloutRules) -> None:
        """Makes the policy of these rules, if it is another one than before."""
        if self._policy is None or self._rules is None or self._rules.max_tokens != rules.max_tokens:
            self._policy, self._weights = self._policy_of(rules), None
        self._rules = rules

    def run(self, tasks: Sequence[GroupTask], rules: RolloutRules, weights: Weights) -> Iterator[Delivery]:
        """The groups' deliveries, each as soon as it is there, one for every group."""
        try:
            self.prepare(rules)
            self._load(weights)
        except PolicyUnavailableError as error:
            logger.error("%d groups fail: %s", len(tasks), error)
            yield from (failed(task.assigned, FailureReason.POLICY) for task in tasks)
            return
        yield from self._run(tasks, rules)

    def _run(self, tasks: Sequence[GroupTask], rules: RolloutRules) -> Iterator[Delivery]:
        assert self._policy is not None
        left = {task.assigned.request.group: task.assigned for task in tasks}
        specs = [_spec(task) for task in tasks]
        limits = Limits(messages=rules.max_assistant_messages, calls=rules.max_calls_per_turn)
        try:
            for outcome in run_groups(self._policy, self._source, specs, limits, self._attempts_at_once):
                assigned = left.pop(outcome.spec.group)
                yield Delivery(assigned, record(assigned.request, uuid4().hex, outcome.attempts))
        except Exception:
            logger.exception("a batch ended early; %d groups fail", len(left))
            yield from (failed(assigned, FailureReason.POLICY) for assigned in left.values())

    def _load(self, weights: Weights) -> None:
        assert self._policy is not None
        if weights == self._weights:
            return
        for left in reversed(range(LOAD_TRIES)):
            try:
                self._policy.load(weights.version, weights.location, weights.sha256)
            except Exception as error:
                self._weights = None
                if not left:
                    raise PolicyUnavailableError(f"policy version {weights.version} does not load: {error}") from error
                time.sleep(LOAD_PAUSE_SECONDS)
            else:
                self._weights = weights
                return


def failed(assigned: Assigned, reason: FailureReason) -> Delivery:
    """A group whose every slot is failed."""
    return Delivery(assigned, record_failure(assigned.request, uuid4().hex, reason))


def policy_maker(policy: str, threads: int) -> PolicyOf:
    """How to make the policy named by a worker's settings: `scripted`, or a local model folder."""
    if policy == SCRIPTED:
        return lambda _: ScriptedPolicy()
    return lambda rules: _transformers_policy(Path(policy), threads, rules.max_tokens)


def _transformers_policy(folder: Path, threads: int, max_tokens: int) -> Policy:
    import torch

    from producers.environments.workbench.language import calls_of, join
    from producers.rollouts.transformers_policy import TransformersPolicy

    torch.set_num_threads(threads)
    return TransformersPolicy(folder, join=join, calls_of=calls_of, max_tokens=max_tokens)


def _spec(task: GroupTask) -> GroupSpec:
    request = task.assigned.request
    return GroupSpec(request.group, task.definition, request.k, request.seed, request.temperature)
