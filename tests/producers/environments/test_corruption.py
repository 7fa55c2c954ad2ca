"""Corruptions follow from seed and index alone, and each kind does what its name says."""

from collections import Counter

from producers.environments.calls import parse_call
from producers.environments.corruption import Case, Corruption, corrupted_cases
from schemas.task import TaskDefinition, Turn


def task(name: str, *turns: tuple[str, ...]) -> TaskDefinition:
    return TaskDefinition(name, "bfcl", "base", "0", ("C",), "{}", tuple(Turn(("do",), calls) for calls in turns))


TASKS = [
    task("a", ("f(a=1)", "g(b='x')"), (), ("h(c=[1, 2])",)),
    task("b", ("k(d=True)",), ("m(e=1.5)", "n()")),
    task("silent", (), ()),
]


def calls_of(case: Case) -> Counter[str]:
    return Counter(call for turn in case.turns for call in turn)


def test_the_same_seed_gives_the_same_cases_and_another_seed_others() -> None:
    first = list(corrupted_cases(TASKS, 1, 200))
    assert first == list(corrupted_cases(TASKS, 1, 200))
    assert first[:50] == list(corrupted_cases(TASKS, 1, 50))
    assert first != list(corrupted_cases(TASKS, 2, 200))


def test_every_kind_occurs_for_every_task_and_turns_stay_as_many() -> None:
    cases = list(corrupted_cases(TASKS, 1, 18))
    assert {(case.position, case.kind) for case in cases} == {(p, kind) for p in range(3) for kind in Corruption}
    assert all(len(case.turns) == TASKS[case.position].turns_total for case in cases)


def test_each_kind_does_what_its_name_says() -> None:
    for case in corrupted_cases(TASKS, 3, 600):
        truth = Counter(call for turn in TASKS[case.position].turns for call in turn.ground_truth)
        found = calls_of(case)
        if case.kind is Corruption.ADDED or not truth:
            assert found.total() == truth.total() + 1
        elif case.kind is Corruption.DROPPED:
            assert found.total() == truth.total() - 1
        elif case.kind in (Corruption.MOVED, Corruption.SWAPPED):
            assert found == truth
        else:
            assert found.total() == truth.total()
            assert (found - truth).total() <= 1


def test_corrupted_calls_are_still_calls() -> None:
    for case in corrupted_cases(TASKS, 4, 600):
        for call in calls_of(case):
            parse_call(call)
