"""Hostile calls in an environment are failed calls: nothing runs, nothing hangs, nothing leaks."""

from dataclasses import replace
from pathlib import Path

import pytest

from producers.environments.bfcl import BfclSource
from schemas.task import TaskDefinition, Turn

SOURCE = BfclSource()
TASK = TaskDefinition(
    "t", "bfcl", "base", "0", ("GorillaFileSystem", "MathAPI"), "{}", (Turn(("x",), ("touch('a')",)),) * 3
)


@pytest.mark.parametrize(
    "text",
    [
        "open('{path}', 'w')",
        "__import__('pathlib').Path('{path}').touch()",
        "exec('1')",
        "eval('1')",
        "print('x')",
        "exit()",
        "kill()",
        "_load_scenario(scenario={{}})",
        "__init__()",
        "root()",
        "long_context()",
        "cd.__class__()",
        "self.cd(folder='a')",
        "cd(folder=open('{path}', 'w'))",
        "cd(folder=[open('{path}', 'w') for x in [1]])",
        "touch('a') or open('{path}', 'w')",
        "power(base=10, exponent=1000000000000)",
        "power(base=9, exponent=170141183460469231731687303715884105727)",
        "round_number(number=5, decimal_places=-1000000000)",
        "logarithm(value=2, base=3, precision=1000000000)",
        "square_root(2, 1000000000)",
        "x" * 1_000_000,
        "touch('" + "a" * 1_000_000 + "')",
        "cd(" * 5_000,
        "\x00",
        "",
    ],
)
def test_a_hostile_call_fails_and_changes_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "written"
    environment = SOURCE.reset(TASK)
    result = environment.call(text.format(path=path) if len(text) < 200 else text)
    assert not result.ok
    assert 0 < len(result.text) < 400
    assert not path.exists()
    assert environment.call("touch('a')").ok
    assert environment.judge()


def test_a_directory_within_itself_fails_calls_and_never_the_process() -> None:
    environment = SOURCE.reset(replace(TASK, turns=(Turn(("x",), ("mkdir('d')", "cp('d', 'd')")),)))
    for text in ["mkdir('d')", "cp('d', 'd')"]:
        environment.call(text)
    assert "recursion" in environment.call("find()").text
    environment.call("touch('more')")
    assert not environment.judge()


def test_copies_are_bounded_since_directories_share_their_contents() -> None:
    environment = SOURCE.reset(TASK)
    environment.call("touch('a')")
    copied = [environment.call(f"cp('a', 'b{number}')").ok for number in range(20)]
    assert 0 < sum(copied) < 20
    assert copied == sorted(copied, reverse=True)
