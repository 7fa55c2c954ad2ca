"""What `verify` says of an archive, fault by fault."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eventlog.reader import LogRecord
from schemas.codec import encode
from schemas.envelope import Producer, stamp
from schemas.epochs import EpochOpened
from schemas.identity import trajectory_digest
from schemas.pool import EventRefused
from schemas.rollouts import Slot, TrajectoryRecorded
from schemas.rules import Rules, canonical_json
from schemas.topics import Topic
from streams.archive.cut import CUTS, record_cut
from streams.archive.heads import generate_key, read_private_key, read_public_key, sign, take_heads, write_heads
from streams.archive.manifest import MANIFEST
from streams.archive.partition import PartitionArchive, partition_folder
from streams.archive.set_aside import set_aside
from streams.archive.worker import keep_schemas
from streams.audit.errors import AuditError
from streams.audit.verify.archive import Witness, verify_archive
from streams.audit.verify.fault import FaultKind
from streams.audit.verify.payload import PayloadCounts
from streams.audit.verify.set_aside import SetAsideCount
from tests.streams.audit.forge import GOLDEN
from tests.streams.rollout_log import barrier, live, result


def _append(archive: Path, topic: Topic, partition: int, *pairs: tuple[str, bytes]) -> None:
    written = PartitionArchive(archive, topic, partition)
    for offset, (key, value) in enumerate(pairs, written.next_offset or 0):
        written.add(LogRecord(topic.named("rods."), partition, offset, 1_000, key.encode(), value, ()), 0.0)
    written.seal()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A small whole archive of a run of one partition."""
    folder = tmp_path / "archive"
    keep_schemas(folder)
    for topic in Topic:
        PartitionArchive(folder, topic, 0)
    opened = EpochOpened(1, 1, Rules().canonical(), 1, "code", {}, "0" * 64, "", "")
    event = stamp(opened, run_id="run", occurred_at=1, producer=Producer.LEARNER)
    _append(folder, Topic.EPOCHS, 0, ("run", encode(event)))
    _append(folder, Topic.ROLLOUTS, 0, ("t", encode(result())), ("run", encode(barrier())))
    return folder


def _kinds(archive: Path, witness: Witness | None = None) -> list[FaultKind]:
    return [fault.kind for fault in verify_archive(archive, witness=witness).faults]


def test_a_whole_archive_is_sound_and_counted(archive: Path) -> None:
    found = verify_archive(archive)
    assert (found.faults, found.run, found.partitions) == ([], "run", len(Topic))
    assert (found.segments, found.records, found.attempts) == (2, 3, 4)


def test_no_archive_is_said(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="no archive"):
        verify_archive(tmp_path / "none")


def test_facts_told_twice_are_counted_and_no_fault(archive: Path) -> None:
    _append(archive, Topic.ROLLOUTS, 0, ("t", encode(result(execution="again"))))
    found = verify_archive(archive)
    assert (found.faults, found.repeated) == ([], 1)


def test_an_unknown_schema_is_a_fault_at_its_offset(archive: Path) -> None:
    _append(archive, Topic.ROLLOUTS, 0, ("t", b"\xc3\x01" + bytes(8) + b"x"))
    (fault,) = verify_archive(archive).faults
    assert (fault.kind, fault.offset) == (FaultKind.UNKNOWN_SCHEMA, 2)
    assert "upgrade" in fault.line()


def test_poison_is_a_fault_unless_the_dead_letters_tell_of_it(archive: Path) -> None:
    poison = b"not an event"
    _append(archive, Topic.ROLLOUTS, 0, ("t", poison))
    (fault,) = verify_archive(archive).faults
    assert (fault.kind, fault.offset) == (FaultKind.UNDECODABLE, 2)
    letter = EventRefused("rods.rollouts", 0, 2, hashlib.sha256(poison).hexdigest(), poison, "no event")
    refused = stamp(letter, run_id="run", occurred_at=1, producer=Producer.READER)
    _append(archive, Topic.DEAD_LETTERS, 0, ("rods.rollouts", encode(refused)))
    found = verify_archive(archive)
    assert (found.faults, found.refused) == ([], 1)


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        ("t", encode(result(run="other")), FaultKind.MISPLACED),
        ("u", encode(result()), FaultKind.MISPLACED),
        ("t", encode(replace(result(), group="edited")), FaultKind.MISPLACED),
        ("t", encode(replace(result(), purpose="fun")), FaultKind.VALUE),
        ("t", encode(replace(result(), k=9)), FaultKind.VALUE),
        ("run", encode(barrier(rules=Rules(), step=2)).replace(b'"window":1', b'"window":0'), FaultKind.VALUE),
    ],
)
def test_events_that_cannot_be_are_faults_at_their_offset(
    archive: Path, key: str, value: bytes, kind: FaultKind
) -> None:
    _append(archive, Topic.ROLLOUTS, 0, (key, value))
    (fault,) = verify_archive(archive).faults
    assert (fault.kind, fault.offset, fault.file.startswith("rollouts/00000/")) == (kind, 2, True)


def test_a_torn_manifest_is_told_and_nothing_of_the_lock_or_of_unfinished_files(archive: Path) -> None:
    folder = partition_folder(archive, Topic.ROLLOUTS, 0)
    (folder / ".77.tmp").write_bytes(b"half")
    assert _kinds(archive) == []
    with (folder / MANIFEST).open("ab") as manifest:
        manifest.write(b'{"file"')
    assert _kinds(archive) == [FaultKind.TORN]


@pytest.mark.parametrize(
    ("spoil", "kinds"),
    [
        (lambda folder: (folder / "extra").write_text("x"), [FaultKind.STRAY]),
        (lambda folder: (folder / MANIFEST).unlink(), [FaultKind.STRAY]),
        (lambda folder: (folder / MANIFEST).write_bytes(b"{}\n"), [FaultKind.MANIFEST, FaultKind.STRAY]),
        (lambda folder: (folder / MANIFEST).write_bytes(b"[" * 100_000 + b"\n"), [FaultKind.MANIFEST, FaultKind.STRAY]),
    ],
)
def test_files_and_lines_that_do_not_belong_are_faults(
    archive: Path, spoil: Callable[[Path], object], kinds: list[FaultKind]
) -> None:
    spoil(partition_folder(archive, Topic.ROLLOUTS, 0))
    assert sorted(_kinds(archive)) == sorted(kinds)


def test_a_partition_that_is_missing_or_beyond_n_is_a_fault(archive: Path) -> None:
    (partition_folder(archive, Topic.SEALS, 0) / "manifest.lock").unlink()
    partition_folder(archive, Topic.SEALS, 0).rmdir()
    partition_folder(archive, Topic.SEEDS, 5).mkdir()
    assert set(_kinds(archive)) == {FaultKind.STRAY, FaultKind.MISSING}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda schemas: (schemas / "StepOpened.v1.avsc").write_text("{}"),
        lambda schemas: (schemas / "StepOpened.v1.avsc").unlink(),
        lambda schemas: (schemas / "Other.v1.avsc").write_text("{}"),
        lambda schemas: (schemas / "index.json").write_text("{"),
        lambda schemas: (schemas / "index.json").unlink(),
        lambda schemas: (schemas / "index.json").write_text(
            (schemas / "index.json").read_text().replace("0b56de65", "0b56de66")
        ),
    ],
)
def test_schema_texts_are_held_to_their_index(archive: Path, spoil: Callable[[Path], object]) -> None:
    spoil(archive / "schemas")
    found = verify_archive(archive).faults
    assert found
    assert {fault.kind for fault in found} == {FaultKind.SCHEMA_TEXT}


def test_a_tail_cut_off_below_a_recorded_cut_is_a_fault(archive: Path) -> None:
    record_cut(archive, "epoch-1", {(Topic.ROLLOUTS, 0): 2, (Topic.EPOCHS, 0): 1})
    assert verify_archive(archive).cuts == 1
    assert _kinds(archive) == []
    folder = partition_folder(archive, Topic.ROLLOUTS, 0)
    (folder / MANIFEST).write_bytes(b"")
    next(folder.glob("*.avro")).unlink()
    (fault,) = verify_archive(archive).faults
    assert (fault.kind, fault.offset, fault.last) == (FaultKind.CUT, 0, 1)


def test_a_return_to_a_cut_is_no_fault_and_its_record_is_held_to_its_chain(archive: Path) -> None:
    cut = record_cut(archive, "one", {(Topic.ROLLOUTS, 0): 1, (Topic.EPOCHS, 0): 1})
    record_cut(archive, "two", {(Topic.ROLLOUTS, 0): 2, (Topic.EPOCHS, 0): 1})
    set_aside(archive, cut)
    assert _kinds(archive) == []
    log = archive / "set-aside.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"previous":""', b'"previous":"x"'))
    assert _kinds(archive) == [FaultKind.SET_ASIDE]


@pytest.fixture
def returned(archive: Path) -> Path:
    """Taken back to a cut before its second result, and grown again."""
    _append(archive, Topic.ROLLOUTS, 0, ("t", encode(result(step=2))), ("t", encode(result(step=3))))
    cut = record_cut(archive, "one", {(Topic.ROLLOUTS, 0): 2, (Topic.EPOCHS, 0): 1})
    record_cut(archive, "two", {(Topic.ROLLOUTS, 0): 4, (Topic.EPOCHS, 0): 1})
    set_aside(archive, cut)
    _append(archive, Topic.ROLLOUTS, 0, ("t", encode(result(step=2, execution="again"))))
    return archive


def test_what_was_set_aside_is_listed_and_verified(returned: Path) -> None:
    found = verify_archive(returned)
    assert (found.faults, found.set_aside) == ([], (SetAsideCount("set-aside/0001", 1, 1, 2),))


def test_what_was_set_aside_is_not_called_missing_where_the_return_was_cut_short_and_done_again(returned: Path) -> None:
    log, folder = returned / "set-aside.jsonl", returned / "set-aside"
    first = log.read_bytes()
    again = json.loads(first) | {"folder": "set-aside/0002", "previous": hashlib.sha256(first).hexdigest()}
    log.write_bytes(first + canonical_json(again).encode() + b"\n")
    (folder / "0001").rename(folder / "0002")
    (folder / "0001").mkdir()
    (folder / "0003").mkdir()
    found = verify_archive(returned)
    assert found.faults == []
    assert [(back.folder, back.records) for back in found.set_aside] == [("set-aside/0001", 0), ("set-aside/0002", 2)]


ASIDE = "set-aside/0001/rollouts/00000"
GONE = f"{2:020d}-{3:020d}.avro"


@pytest.mark.parametrize(
    ("spoil", "kind", "file"),
    [
        (lambda aside: (aside / GONE).unlink(), FaultKind.MISSING, f"{ASIDE}/{GONE}"),
        (lambda aside: (aside / GONE).write_bytes(b"x" * 9), FaultKind.TORN, f"{ASIDE}/{GONE}"),
        (lambda aside: (aside / MANIFEST).unlink(), FaultKind.STRAY, f"{ASIDE}/{GONE}"),
        (lambda aside: (aside / MANIFEST).write_bytes(b""), FaultKind.SET_ASIDE, f"{ASIDE}/{MANIFEST}"),
        (lambda aside: shutil.rmtree(aside), FaultKind.MISSING, ASIDE),
        (lambda aside: (aside.parents[2] / "7").write_bytes(b"x"), FaultKind.STRAY, "set-aside/7"),
    ],
)
def test_what_was_set_aside_and_spoiled_is_a_fault(
    returned: Path, spoil: Callable[[Path], object], kind: FaultKind, file: str
) -> None:
    spoil(returned / ASIDE)
    assert (kind, file) in [(fault.kind, fault.file) for fault in verify_archive(returned).faults]


@pytest.mark.parametrize(
    "line", [{}, {"folder": 1}, {"folder": "set-aside/../..", "cut": 1, "partitions": {}}, {"partitions": [1]}]
)
def test_a_line_that_tells_of_no_return_is_a_fault(archive: Path, line: dict[str, Any]) -> None:
    (archive / "set-aside.jsonl").write_text(canonical_json({**line, "previous": ""}) + "\n")
    assert _kinds(archive) == [FaultKind.SET_ASIDE]


def _trajectory(attempt: int, tokens: tuple[int, ...]) -> TrajectoryRecorded:
    group, zeros = result(step=2).group, (0.0,) * len(tokens)
    event = TrajectoryRecorded(group, "e1", attempt, 1, 2, "t", 1, tokens, zeros, bytes(len(tokens)), "[]")
    return stamp(event, run_id="run", occurred_at=1, producer=Producer.ROLLOUT)


def _naming(trajectory: TrajectoryRecorded, passed: int) -> Slot:
    digest = trajectory_digest(trajectory.token_ids, trajectory.logprobs, trajectory.loss_mask, trajectory.messages)
    return live(passed, trajectory=digest)


def test_a_trajectory_that_is_not_the_one_its_result_names_is_a_fault_at_its_offset(archive: Path) -> None:
    told = [_trajectory(attempt, (attempt, 7, 8)) for attempt in range(3)]
    slots = (*(_naming(trajectory, 1) for trajectory in told), live(2))
    _append(archive, Topic.TRAJECTORIES, 0, *[("t", encode(trajectory)) for trajectory in told])
    _append(archive, Topic.ROLLOUTS, 0, ("t", encode(result(step=2, slots=slots))))
    found = verify_archive(archive)
    assert (found.faults, found.trajectories) == ([], PayloadCounts(named=8, present=3))
    _append(archive, Topic.TRAJECTORIES, 0, ("t", encode(_trajectory(1, (1, 7, 9)))))
    (fault,) = verify_archive(archive).faults
    assert (fault.kind, fault.offset) == (FaultKind.TRAJECTORY, 3)
    assert fault.file.startswith("trajectories/00000/") and "the result at offset 2 of rollouts" in fault.meaning


def test_a_trajectory_of_an_execution_that_never_told_its_result_is_no_fault(archive: Path) -> None:
    lost = replace(_trajectory(0, (1,)), execution="lost")
    _append(archive, Topic.TRAJECTORIES, 0, ("t", encode(stamp(lost, run_id="run", occurred_at=1, producer="rollout"))))
    assert _kinds(archive) == []


def test_any_flipped_bit_of_the_cuts_is_a_fault(archive: Path) -> None:
    record_cut(archive, "one", {(Topic.ROLLOUTS, 0): 1})
    record_cut(archive, "two", {(Topic.ROLLOUTS, 0): 2})
    data = (archive / CUTS).read_bytes()
    for position in range(0, len(data), 3):
        changed = bytearray(data)
        changed[position] ^= 1 << position % 8
        (archive / CUTS).write_bytes(bytes(changed))
        assert set(_kinds(archive)) & {FaultKind.CUT, FaultKind.TORN}


def test_heads_of_before_hold_for_an_archive_that_has_grown(archive: Path) -> None:
    heads = take_heads(archive, "run")
    _append(archive, Topic.ROLLOUTS, 0, ("t", encode(result(step=2))))
    found = verify_archive(archive, witness=Witness(heads))
    assert (found.faults, found.heads) == ([], "given")


def test_heads_of_another_run_are_told(archive: Path) -> None:
    assert _kinds(archive, Witness(take_heads(archive, "another"))) == [FaultKind.HEAD]


def test_a_signature_holds_for_its_key_and_for_what_it_covers(archive: Path, tmp_path: Path) -> None:
    for name in ("mine", "other"):
        generate_key(tmp_path / name)
    mine, other = (read_public_key(tmp_path / f"{name}.pub") for name in ("mine", "other"))
    assert _kinds(archive, Witness(key=mine)) == [FaultKind.SIGNATURE]
    signed = sign(take_heads(archive, "run"), read_private_key(tmp_path / "mine"))
    write_heads(signed, archive / "heads.json")
    assert _kinds(archive, Witness(key=mine)) == []
    assert _kinds(archive, Witness(key=other)) == [FaultKind.SIGNATURE]
    assert _kinds(archive, Witness(replace(signed, cuts=0, cuts_chain="x"), mine))[0] == FaultKind.SIGNATURE
    _append(archive, Topic.ROLLOUTS, 0, ("t", encode(result(step=2))))
    (fault,) = verify_archive(archive, witness=Witness(key=mine)).faults
    assert (fault.kind, fault.offset, fault.last) == (FaultKind.SIGNATURE, 2, 2)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 2, "heads": []}', "[" * 100_000])
def test_signed_heads_that_do_not_parse_are_a_fault(archive: Path, tmp_path: Path, text: str) -> None:
    generate_key(tmp_path / "mine")
    (archive / "heads.json").write_text(text)
    assert _kinds(archive, Witness(key=read_public_key(tmp_path / "mine.pub"))) == [FaultKind.SIGNATURE]


def test_processes_find_what_one_finds(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.audit.verify.archive._PARALLEL_FROM_BYTES", 0)
    _append(archive, Topic.ROLLOUTS, 0, ("t", b"poison"), ("t", encode(result(step=2))))
    one, two = verify_archive(archive, 1), verify_archive(archive, 2)
    assert one == two
    assert len(one.faults) == 1


def test_processes_hold_each_trajectory_to_the_results_of_its_own_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.audit.verify.archive._PARALLEL_FROM_BYTES", 0)
    one, two = verify_archive(GOLDEN / "defaults", 1), verify_archive(GOLDEN / "defaults", 2)
    assert one == two and one.sound
    assert one.trajectories.present == one.trajectories.named > 0


def test_faults_are_json(archive: Path) -> None:
    _append(archive, Topic.ROLLOUTS, 0, ("t", b"poison"))
    (fault,) = verify_archive(archive).faults
    document = json.loads(json.dumps(fault.as_json()))
    assert document.keys() == {"file", "kind", "offset", "last", "meaning"}
    assert document["kind"] == "undecodable"
