"""What a user gets wrong is said in one sentence, ends with exit code 2, and overwrites nothing."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from producers.environments.workbench.source import WorkbenchSource
from rods.run_folder import RunFolder
from tests.integration.loop import Loop
from tests.task_files import write_tasks


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


def test_an_unknown_policy_is_refused(tmp_path: Path) -> None:
    assert_refused(rods("run", "--policy", "wizard", "--folder", str(tmp_path / "run")), "wizard")
    assert not (tmp_path / "run").exists()


def test_a_missing_model_folder_is_refused(tmp_path: Path) -> None:
    done = rods("run", "--policy", str(tmp_path / "nowhere"), "--folder", str(tmp_path / "run"))
    assert_refused(done, "nowhere")
    assert not (tmp_path / "run").exists()


def test_an_unknown_task_source_is_refused(tmp_path: Path) -> None:
    done = rods("run", "--tasks", "mystery", "--policy", "scripted", "--folder", str(tmp_path / "run"))
    assert_refused(done, "mystery", "workbench")


@pytest.mark.parametrize("option", ["--broker-port", "--dashboard-port"])
def test_a_port_in_use_is_refused(tmp_path: Path, option: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert_refused(rods("run", "--policy", "scripted", option, port, "--folder", str(tmp_path / "run")), port)


def test_a_broker_that_does_not_answer_is_refused(tmp_path: Path) -> None:
    done = rods("run", "--policy", "scripted", "--broker", "127.0.0.1:1", "--folder", str(tmp_path / "run"))
    assert_refused(done, "127.0.0.1:1")


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


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    loop = Loop(tmp_path / "run", epochs=50)
    yield loop
    loop.end()


@pytest.mark.slow
def test_ctrl_c_ends_a_run_with_nothing_left_running(loop: Loop) -> None:
    loop.until(lambda: all(loop.pids(service) for service in ("streams", "rollouts", "synthesis", "archive")))
    time.sleep(8)
    started = psutil.Process(loop.process.pid).children(recursive=True)
    os.kill(loop.process.pid, signal.SIGINT)
    out, _ = loop.process.communicate()
    assert loop.process.returncode == 130
    assert json.loads(out)["ending"] == "interrupted"
    assert [process for process in started if process.is_running() and process.status() != "zombie"] == []
    assert (loop.folder / "report.html").exists()
