"""What a user gets wrong is said in one sentence, ends with exit code 2, and overwrites nothing."""

import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from producers.environments.workbench.source import WorkbenchSource
from rods.cli.main import main
from rods.run_folder import RunFolder
from schemas.seals import PartitionSealed
from schemas.topics import Topic
from tests.integration.loop import Loop, first
from tests.task_files import write_tasks

Refused = Callable[..., str]


def snapshot(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Gives a command, which is refused and changes no file; its sentence."""

    def give(*words: object) -> str:
        before = snapshot(tmp_path)
        monkeypatch.setattr(sys, "argv", ["rods", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, sentence = capsys.readouterr()
        assert (ended.value.code, out, snapshot(tmp_path)) == (2, "", before), sentence
        assert sentence.startswith("rods: ") and sentence.strip().count("\n") == 0
        return sentence

    return give


@pytest.fixture
def run_refused(refused: Refused, tmp_path: Path) -> Refused:
    """The same of a scripted run in the folder `run`."""
    return lambda *options: refused("run", "--policy", "scripted", "--folder", tmp_path / "run", *options)


def test_a_task_file_with_a_broken_record_is_named_with_its_line(run_refused: Refused, tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    write_tasks(file, list(WorkbenchSource(train=3, heldout=0).tasks("train")))
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], lines[1][:-20], lines[2]]) + "\n")
    sentence = run_refused("--tasks", file)
    assert "tasks.jsonl" in sentence and "line 2" in sentence


@pytest.mark.parametrize(
    ("option", "value", "word"),
    [
        ("--policy", "wizard", "wizard"),
        ("--policy", "no/such/folder", "no/such/folder"),
        ("--tasks", "mystery", "workbench"),
        ("--broker", "127.0.0.1:1", "127.0.0.1:1"),
    ],
)
def test_what_a_run_cannot_begin_with_is_named(run_refused: Refused, option: str, value: str, word: str) -> None:
    assert word in run_refused(option, value)


@pytest.mark.parametrize("option", ["--broker-port", "--dashboard-port"])
def test_a_port_in_use_is_refused(run_refused: Refused, option: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert str(port) in run_refused(option, port)


def test_a_second_run_on_a_folder_is_refused(run_refused: Refused, tmp_path: Path) -> None:
    RunFolder(tmp_path / "run").create("first")
    (tmp_path / "run" / "settings.json").write_text("kept")
    assert str(tmp_path / "run") in run_refused()


def test_a_run_folder_of_another_version_is_refused(run_refused: Refused, refused: Refused, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    RunFolder(folder).create("first")
    (folder / "run.json").write_text(json.dumps({"format": 99, "run": "first"}))
    assert "99" in run_refused() and "99" in refused("pool", "show", folder)


def test_a_folder_with_other_files_in_it_is_refused(run_refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert str(tmp_path) in run_refused("--folder", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("broker", ["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
async def test_ctrl_c_ends_a_run_and_its_broker_with_nothing_left_running(
    tmp_path: Path, loops: list[Loop], broker: str
) -> None:
    loop = Loop(tmp_path / "run", "--broker", broker, epochs=50)
    loops.append(loop)
    await first(loop.address, Topic.SEALS, lambda event: isinstance(event, PartitionSealed))
    started = psutil.Process(loop.process.pid).children(recursive=True)
    assert loop.broker_pid() in {process.pid for process in started}
    os.kill(loop.process.pid, signal.SIGINT)
    out, _ = loop.process.communicate()
    assert loop.process.returncode == 130
    assert json.loads(out)["ending"] == "interrupted"
    assert [process for process in started if process.is_running() and process.status() != "zombie"] == []
    assert (loop.folder / "report.html").exists()
