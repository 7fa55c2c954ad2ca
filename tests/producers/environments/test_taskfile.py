"""Task files round trip; a flaw is one sentence that names the line."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from producers.environments.errors import TaskSourceError
from producers.environments.sources import source_named
from producers.environments.taskfile import read_tasks
from schemas.task import TaskDefinition, Turn
from tests.task_files import write_tasks

GOOD = TaskDefinition(
    "t1", "bfcl", "base", "0", ("C",), '{"C":{}}', (Turn(("do é",), ("f(a=1)",), ("g",)), Turn((), ()))
)


def record(**changes: Any) -> str:
    return json.dumps(asdict(GOOD) | changes)


def test_tasks_are_read_as_they_were_written(tmp_path: Path) -> None:
    second = TaskDefinition("t2", "workbench", "base", "1", (), "{}", (Turn(("x",), ()),), parent="t1")
    write_tasks(tmp_path / "tasks.jsonl", [GOOD, second])
    assert read_tasks(tmp_path / "tasks.jsonl") == (GOOD, second)


def test_all_tasks_of_bfcl_round_trip(tmp_path: Path) -> None:
    tasks = tuple(source_named("bfcl").tasks("train"))
    write_tasks(tmp_path / "tasks.jsonl", tasks)
    assert read_tasks(tmp_path / "tasks.jsonl") == tasks


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "\xff",
        record(task=""),
        record(task=7),
        record(turns=[]),
        record(turns=[{"requests": ["x"]}]),
        record(turns=[{"requests": "x", "ground_truth": []}]),
        record(turns=[{"requests": [], "ground_truth": ["os.system('x')"]}]),
        record(initial_state="{"),
        record(initial_state="[]"),
        record(initial_state={}),
        record(initial_state="[" * 100_000),
        record(source="elsewhere"),
        record(surprise=1),
        record(),
        "[" * 100_000,
    ],
)
def test_a_broken_record_is_one_sentence_that_names_the_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(record().encode() + b"\n\n" + line.encode("latin-1") + b"\n")
    with pytest.raises(TaskSourceError, match=r"tasks.jsonl line 3: ") as caught:
        read_tasks(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_missing_file_an_empty_file_and_a_folder_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    for name in ["none", "empty", "."]:
        with pytest.raises(TaskSourceError):
            read_tasks(tmp_path / name)


def test_an_unknown_source_names_the_known_ones() -> None:
    with pytest.raises(TaskSourceError, match="workbench or bfcl"):
        source_named("nowhere")
