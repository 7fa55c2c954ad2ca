import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from eventlog.client import log_producer
from rods.brokers.embedded import EmbeddedBroker
from rods.cli.run import run as run_command
from rods.errors import UserError
from rods.reports.table import LiveTable
from rods.resume import choose_cut, plan_resumption, resumed_settings
from rods.run import resume
from rods.run_folder import RunFolder
from rods.settings import Settings, write_resolved
from schemas.codec import encode
from schemas.envelope import Event, stamp
from schemas.epochs import EpochClosed
from schemas.rules import Rules
from schemas.topics import Topic
from streams.archive.cut import record_cut
from streams.archive.partition import partition_folder
from tests.archives import record, seal
from tests.log_writing import send_all


def run_folder(path: Path, kind: str = "embedded", policy: str = "scripted", **changes: Any) -> RunFolder:
    """The folder of a run of three epochs that has stopped."""
    folder = RunFolder(path)
    folder.create("run", kind)
    settings = Settings(
        run_id="run", folder=str(path), policy=policy, broker="127.0.0.1:9", rules=Rules(epochs=3), dashboard_port=9
    )
    write_resolved(settings.model_copy(update=changes), folder.settings)
    return folder


def archived(folder: RunFolder, *events: Event) -> None:
    """Events of the learner's log, sealed."""
    values = [stamped(event, "run") for event in events]
    seal(folder.archive, Topic.EPOCHS, 0, [record(n, value, topic=Topic.EPOCHS) for n, value in enumerate(values)])
    seal(folder.archive, Topic.ROLLOUTS, 0, [])


def cut_at(folder: RunFolder, name: str, end: int = 1) -> None:
    record_cut(folder.archive, name, {(Topic.EPOCHS, 0): end, (Topic.ROLLOUTS, 0): 0})


def refuses(folder: RunFolder, words: str, epochs: int | None = None, **changes: Any) -> None:
    with LiveTable() as live, pytest.raises(UserError, match=words):
        resume(folder, changes, epochs, live)


def test_the_settings_are_those_recorded_on_a_fresh_broker_of_the_same_kind(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", streams_workers=2)
    moved = RunFolder((tmp_path / "run").rename(tmp_path / "moved"))
    found = resumed_settings(moved, {"rollout_workers": 3}, 5)
    assert (found.broker, found.dashboard_port, found.folder) == ("embedded", 0, str(moved.path))
    assert (found.streams_workers, found.rollout_workers, found.rules) == (2, 3, Rules(epochs=5))
    assert folder.path != moved.path


def test_a_change_that_is_no_valid_setting_is_told_by_its_name(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    with pytest.raises(UserError, match="the setting streams_workers must be at least 1, not 0"):
        resumed_settings(folder, {"streams_workers": 0})


def test_another_broker_of_yours_may_be_named_and_no_other_kind(tmp_path: Path) -> None:
    yours, own = run_folder(tmp_path / "a", "external"), run_folder(tmp_path / "b", "kafka")
    assert resumed_settings(yours, {}).broker == "127.0.0.1:9"
    assert resumed_settings(yours, {"broker": "127.0.0.1:10"}).broker == "127.0.0.1:10"
    with pytest.raises(UserError, match="on its own broker"):
        resumed_settings(own, {"broker": "127.0.0.1:10"})


def test_epochs_may_only_be_raised(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    assert resumed_settings(folder, {}, 3).rules.epochs == 3
    refuses(folder, "has 3 epochs, which --epochs may only raise", epochs=2)


def test_what_decides_a_run_cannot_be_given_again(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--seed cannot be given with --resume"):
        run_command(resume=tmp_path, seed=3)
    with pytest.raises(UserError, match="--set cannot be given with --resume"):
        run_command(resume=tmp_path, assignments=["rules.seed=3"])


def test_what_is_no_run_folder_or_of_another_version_is_refused(tmp_path: Path) -> None:
    refuses(RunFolder(tmp_path / "nowhere"), "is no run folder")
    folder = run_folder(tmp_path / "run")
    (folder.path / "run.json").write_text(json.dumps({"format": 9, "run": "run"}))
    refuses(folder, "format 9")


def test_a_folder_that_another_process_works_on_is_refused(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    with folder.locked():
        refuses(folder, "another process works on")


def test_a_run_that_stopped_before_its_first_cut_is_refused(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    refuses(folder, "stopped before its first cut")
    archived(folder, EpochClosed(1, 1, 1, "d"))
    refuses(folder, "stopped before its first cut")


def test_a_finished_run_asks_for_more_epochs(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    archived(folder, EpochClosed(1, 3, 3, "d"))
    cut_at(folder, "step-000009")
    refuses(folder, "has finished its 3 epochs; raise them with --epochs")
    assert plan_resumption(folder, resumed_settings(folder, {}, 4)).cut is not None


def test_the_newest_cut_with_a_whole_checkpoint_is_taken(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", policy="warm-start")
    archived(folder, EpochClosed(1, 1, 1, "d"))
    for name in ("step-000000", "checkpoint-000004-g0001-aa"):
        cut_at(folder, name)
    cut, skipped = choose_cut(folder, scripted=False)
    assert (cut.number, len(skipped)) == (1, 1)
    assert "cut 2 does not serve" in skipped[0]
    assert choose_cut(folder, scripted=True)[0].number == 2


def test_where_no_checkpoint_is_whole_the_reason_is_told(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", policy="warm-start")
    archived(folder, EpochClosed(1, 1, 1, "d"))
    cut_at(folder, "checkpoint-000004-g0001-aa")
    refuses(folder, "no cut of .* has a whole checkpoint: cut 1 does not serve: .*state.json is missing")


def test_an_archive_that_does_not_verify_is_refused(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    archived(folder, EpochClosed(1, 1, 1, "d"))
    cut_at(folder, "step-000003")
    place = partition_folder(folder.archive, Topic.EPOCHS, 0)
    segment = next(place.glob("*.avro"))
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    refuses(folder, "archive of the run does not verify: .*sha256")
    segment.write_bytes(whole)
    (place / "manifest.jsonl").unlink()
    refuses(folder, "archive of the run does not verify: it ends before the cut's 1 in epochs/0")


def test_a_lost_log_of_the_runs_own_kafka_is_refused(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", "kafka")
    with pytest.raises(UserError, match="holds no log of a broker"):
        plan_resumption(folder, resumed_settings(folder, {}))


def test_resumptions_are_counted_in_the_folder(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    assert (folder.resumed, folder.is_embedded) == (0, True)
    folder.note_resumption("step-000003")
    folder.note_resumption("step-000006")
    assert folder.resumed == 2 and folder.check_format() == "run"
    assert json.loads((folder.path / "run.json").read_text())["resumed_after"] == "step-000006"


def test_a_broker_of_yours_must_still_hold_the_run(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "broker.log") as broker:
        folder = run_folder(tmp_path / "run", "external", broker=broker.address)
        refuses(folder, "do not hold the run run; bring the log back with rods archive restore")
        asyncio.run(write(broker.address, stamped(EpochClosed(1, 1, 1, "d"), "another")))
        refuses(folder, "hold the run another; ")


async def write(broker: str, value: bytes) -> None:
    async with log_producer(broker) as producer:
        await send_all(producer, "rods.epochs", 0, [("run", value)])


def stamped(event: Event, run: str) -> bytes:
    return encode(stamp(event, run_id=run, occurred_at=1, producer="learner"))
