"""What a user gets wrong is said in one sentence, ends with exit code 2, and overwrites nothing."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from producers.environments.taskfile import write_tasks
from producers.environments.workbench.source import WorkbenchSource
from rods.run_folder import RunFolder
from schemas.seals import PartitionSealed
from schemas.topics import Topic
from tests.integration.loop import Loop, first


def rods(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "rods", *arguments], capture_output=True, text=True)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()} if folder.exists() else {}


def assert_refused(done: "subprocess.CompletedProcess[str]", *words: str) -> None:
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    sentence = done.stderr.strip()
    assert sentence.startswith("rods: ")
    assert "\n" not in sentence
    assert all(word in sentence for word in words), sentence


def test_a_task_file_with_a_broken_record_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    write_tasks(file, list(WorkbenchSource(train=3, heldout=0).tasks("train")))
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], lines[1][:-20], lines[2]]) + "\n")
    done = rods("run", "--tasks", str(file), "--policy", "scripted", "--folder", str(tmp_path / "run"))
    assert_refused(done, "tasks.jsonl", "line 2")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--policy", "wizard", ("wizard",)),
        ("--policy", "no/such/folder", ("no/such/folder",)),
        ("--tasks", "mystery", ("mystery", "workbench")),
        ("--broker", "127.0.0.1:1", ("127.0.0.1:1",)),
    ],
)
def test_what_a_run_cannot_begin_with_is_refused(
    tmp_path: Path, option: str, value: str, words: tuple[str, ...]
) -> None:
    policy = () if option == "--policy" else ("--policy", "scripted")
    assert_refused(rods("run", *policy, option, value, "--folder", str(tmp_path / "run")), *words)


@pytest.mark.parametrize("option", ["--broker-port", "--dashboard-port"])
def test_a_port_in_use_is_refused(tmp_path: Path, option: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert_refused(rods("run", "--policy", "scripted", option, port, "--folder", str(tmp_path / "run")), port)


def test_a_second_run_on_a_folder_is_refused_and_overwrites_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    RunFolder(folder).create("first")
    (folder / "settings.json").write_text("kept")
    before = snapshot(folder)
    assert_refused(rods("run", "--policy", "scripted", "--folder", str(folder)), str(folder))
    assert snapshot(folder) == before


def test_a_run_folder_of_another_version_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    RunFolder(folder).create("first")
    (folder / "run.json").write_text(json.dumps({"format": 99, "run": "first"}))
    before = snapshot(folder)
    for command in (("run", "--policy", "scripted", "--folder", str(folder)), ("pool", "show", str(folder))):
        assert_refused(rods(*command), "99")
    assert snapshot(folder) == before


def test_a_folder_with_other_files_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert_refused(rods("run", "--policy", "scripted", "--folder", str(tmp_path)), str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


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
