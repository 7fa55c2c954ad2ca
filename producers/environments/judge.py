"""When a turn passes: the model's world equals the ground truth's, and each result that had to be seen was seen.

Shared by every environment that keeps two worlds per attempt: one the model's calls act on, one the ground truth acts
on. Both functions are pure and cheap: no reflection beyond `vars`.
"""

from collections.abc import Iterable, Sequence

from producers.environments.errors import EnvironmentFault
from producers.environments.port import Environment

_ABSENT = object()


def states_match(model_objects: Iterable[object], truth_objects: Iterable[object]) -> bool:
    """Whether every public attribute of every truth object equals the model's object in the same position.

    Attributes whose names start with an underscore are private and not compared. Objects built so deeply that comparing
    them overflows the stack count as different: only a model's own calls can build such a thing.
    """
    try:
        return all(_same(model, truth) for model, truth in zip(model_objects, truth_objects, strict=True))
    except RecursionError:
        return False


def responses_match(results_so_far: Sequence[str], required: Iterable[str]) -> bool:
    """Whether each required result occurs among the results so far at least as often as it is required.

    results_so_far: the model's results of the whole attempt, this turn included. required: the ground truth's results
    of this turn alone, taken one by one: after the first that is missing no more are asked for. Order does not matter.
    """
    unmatched = list(results_so_far)
    for result in required:
        if result not in unmatched:
            return False
        unmatched.remove(result)
    return True


def score(environment: Environment, turns_total: int, turns: Sequence[Sequence[str]]) -> tuple[bool, ...]:
    """Plays recorded calls turn by turn and judges each turn; the attempt ends at its first failed turn.

    Always `turns_total` verdicts: turns after the failed one, and turns the record does not reach, are False.
    Raises EnvironmentFault where the record has more turns than the task.
    """
    if len(turns) > turns_total:
        raise EnvironmentFault(f"the record has {len(turns)} turns but the task has {turns_total}")
    passed = 0
    for calls in turns:
        for call in calls:
            environment.call(call)
        if not environment.judge():
            break
        passed += 1
    return (True,) * passed + (False,) * (turns_total - passed)


def _same(model: object, truth: object) -> bool:
    seen = vars(model)
    for name, value in vars(truth).items():
        if name[0] != "_":
            other = seen.get(name, _ABSENT)
            if other is _ABSENT or other != value:
                return False
    return True
