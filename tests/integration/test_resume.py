"""A run that stopped, however it stopped, goes on and decides as if nothing had happened."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from learner.checkpoint_files import read_state
from schemas.epochs import LearnerStarted, PolicyPublished, StepOpened
from schemas.rollouts import TrajectoryRecorded
from schemas.topics import Topic
from streams.archive.cut import read_cuts
from streams.archive.set_aside import read_set_aside
from tests.integration.loop import PATIENT, Loop, archived, digests, first

pytestmark = pytest.mark.slow

TINY = (
    "rules.pool_tasks=4",
    "rules.rollout.k=4",
    "rules.rollout.tasks_per_step=4",
    "rules.rollout.deadline_seconds=240",
)


class Resumed(Loop):
    """``rods run --resume`` as a process."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "rods", "run", "--resume", str(folder), "--json", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Story(NamedTuple):
    """A folder after a run in pieces. ended: exit codes of the pieces; said: what each wrote to stderr."""

    folder: Path
    ended: list[int]
    said: list[str]
    result: dict[str, Any]


@pytest.fixture(scope="module")
def loops() -> Iterator[list[Loop]]:
    """Runs that end with the tests."""
    started: list[Loop] = []
    yield started
    for loop in started:
        loop.end()


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, loops: list[Loop]) -> Story:
    """A scripted run: its broker dies in epoch 2; resumed, it is killed there with all it had; resumed, it ends."""
    folder = tmp_path_factory.mktemp("resumed") / "run"
    ended, said = [], []
    loops.append(Loop(folder, *PATIENT, epochs=2))
    asyncio.run(in_epoch_2(loops[-1]))
    loops[-1].kill(loops[-1].broker_pid())
    said.append(loops[-1].process.communicate()[1])
    ended.append(loops[-1].process.returncode)
    settings = (folder / "settings.json").read_bytes()
    loops.append(Resumed(folder))
    loops[-1].until(lambda: (folder / "settings.json").read_bytes() != settings)
    asyncio.run(in_epoch_2(loops[-1], generation=2))
    loops[-1].process.kill()
    said.append(loops[-1].process.communicate()[1])
    ended.append(loops[-1].process.returncode)
    loops.append(Resumed(folder))
    out, err = loops[-1].process.communicate()
    said.append(err)
    ended.append(loops[-1].process.returncode)
    assert ended[-1] == 0, err[-4000:]
    return Story(folder, ended, said, json.loads(out))


async def in_epoch_2(loop: Loop, generation: int = 1) -> None:
    """Waits for an attempt of epoch 2, asked for by a generation. Topics are there before the workers are."""
    loop.pid("learner")
    opened = lambda e: isinstance(e, StepOpened) and e.epoch == 2 and e.generation >= generation  # noqa: E731
    step = (await first(loop.address, Topic.EPOCHS, opened)).step
    await first(loop.address, Topic.TRAJECTORIES, lambda e: isinstance(e, TrajectoryRecorded) and e.step == step)


def rods(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", "rods", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_run_in_pieces_has_the_digests_of_an_undisturbed_one(story: Story, embedded: Path) -> None:
    assert story.ended == [1, -signal.SIGKILL, 0]
    assert story.result["ending"] == "finished"
    assert digests(story.folder) == digests(embedded) and len(digests(story.folder)) == 3


def test_the_death_of_a_broker_that_keeps_nothing_ends_the_run_in_one_sentence(story: Story) -> None:
    [sentence] = [line for line in story.said[0].splitlines() if line.startswith("rods: ")]
    assert sentence.startswith("rods: the embedded broker died (signal SIGKILL)")
    assert sentence.endswith(f"rods run --resume {story.folder}")


def test_each_resumption_goes_on_from_the_end_of_epoch_1_and_says_so(story: Story) -> None:
    names = [cut.name for cut in read_cuts(story.folder / "archive")]
    assert names[0] == "step-000000" and len(names) == 3
    assert all(f"goes on from cut 2 ({names[1]})" in said for said in story.said[1:])
    marker = json.loads((story.folder / "run.json").read_text())
    assert (marker["resumed"], marker["resumed_after"]) == (2, names[1])


def test_what_lay_behind_the_cut_is_set_aside_and_said(story: Story) -> None:
    told = read_set_aside(story.folder / "archive")
    assert told and {line["cut"] for line in told} == {2}
    kept = [(line["folder"], *name.split("/")) for line in told for name in line["partitions"]]
    assert kept and all(
        (story.folder / "archive" / folder / topic / f"{int(n):05d}").is_dir() for folder, topic, n in kept
    )
    assert f"are set aside in {story.folder / 'archive' / 'set-aside'}" in story.said[1]
    generations = [
        event.generation for _, event in archived(story.folder, Topic.EPOCHS) if isinstance(event, LearnerStarted)
    ]
    assert generations == [1, 2]


def test_the_resumed_archive_verifies_and_its_decisions_follow_again(story: Story) -> None:
    assert json.loads(rods("audit", "verify", str(story.folder), "--json"))["sound"]
    rods("audit", "replay", str(story.folder))
    header = json.loads(rods("pool", "show", str(story.folder), "--json").splitlines()[0])
    assert header["agrees"] and header["digest"] == digests(story.folder)[2]


def test_a_model_goes_on_from_the_weights_of_its_checkpoint(tmp_path: Path, loops: list[Loop]) -> None:
    folder = tmp_path / "run"
    flags = [flag for assignment in TINY for flag in ("--set", assignment)]
    loops.append(Loop(folder, *flags, policy="warm-start", epochs=2))
    cuts = folder / "archive" / "cuts.jsonl"
    loops[-1].until(lambda: cuts.exists() and b"checkpoint-" in cuts.read_bytes())
    loops[-1].process.send_signal(signal.SIGINT)
    loops[-1].process.communicate()
    loops.append(Resumed(folder, "--epochs", "3"))
    assert len(loops[-1].result()["epochs"]) == 4
    name = json.loads((folder / "run.json").read_text())["resumed_after"]
    published = [e for _, e in archived(folder, Topic.EPOCHS) if isinstance(e, PolicyPublished) and e.generation == 2]
    assert published[0].sha256 == read_state(folder / "checkpoints" / name)["weights_sha256"]
    assert published[0].version < published[-1].version


@pytest.mark.kafka
async def test_a_run_on_its_own_kafka_goes_on_with_the_log_it_left(
    tmp_path: Path, embedded: Path, loops: list[Loop]
) -> None:
    folder = tmp_path / "run"
    loops.append(Loop(folder, *PATIENT, "--broker", "kafka", epochs=2))
    await in_epoch_2(loops[-1])
    loops[-1].process.kill()
    loops[-1].process.communicate()
    loops.append(Resumed(folder))
    assert loops[-1].result()["ending"] == "finished"
    assert digests(folder) == digests(embedded)
