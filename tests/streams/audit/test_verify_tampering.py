"""Seeded acts of tampering, each reported in its place. RODS_TAMPERINGS says how many; 1,000 take about two minutes."""

import os
from collections import Counter
from pathlib import Path

import pytest

from streams.archive.heads import Heads, take_heads
from streams.audit.limits import Provenance
from streams.audit.replay import ReplayOptions, replay
from streams.audit.source import ArchiveSource
from streams.audit.verify import Verification, Witness, run_of, verify_archive
from streams.audit.verify_fault import Fault
from tests.streams.audit.tamper import ACTS, Shown, Tampering, resegmented, tampered

GOLDEN = Path(__file__).parents[2] / "golden" / "archives" / "defaults"
COUNT = int(os.environ.get("RODS_TAMPERINGS", "200"))


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tampering") / "archive"
    resegmented(GOLDEN, folder)
    return folder


@pytest.fixture(scope="module")
def heads(archive: Path) -> Heads:
    run, _ = run_of(archive)
    assert run
    return take_heads(archive, run)


def _in_place(fault: Fault, done: Tampering) -> bool:
    folder, _, name = fault.file.rpartition("/")
    if folder != done.folder or name not in done.files or fault.offset is None:
        return False
    return fault.offset <= done.last and done.first <= (fault.offset if fault.last is None else fault.last)


def _wrongly_reported(result: Verification, done: Tampering) -> str:
    """Why a report is not that of the act; empty where it is."""
    if not result.faults:
        return f"{done} is not reported"
    if not _in_place(result.faults[0], done):
        return f"{done} is reported elsewhere: {result.faults[0].line()}"
    if done.exact is not None and not any(fault.offset == done.exact for fault in result.faults):
        return f"{done} is not placed at its offset: {[fault.line() for fault in result.faults]}"
    return ""


def _wrongly_replayed(archive: Path, done: Tampering) -> str:
    """Why a replay does not find the edited decision; empty where it does."""
    report = replay(ArchiveSource(archive), ReplayOptions(None, "", 1), Provenance("", {}))
    places = [divergence.place for divergence in report.divergences]
    expected = f"{done.folder}/{done.files[0]} at offset {done.exact}"
    return "" if expected in places else f"{done} is not found by replay: {places}"


def test_the_untouched_archive_is_sound(archive: Path, heads: Heads) -> None:
    assert verify_archive(archive, witness=Witness(heads)).faults == []


def test_every_act_of_tampering_is_reported_in_its_place(archive: Path, heads: Heads) -> None:
    wrong: list[str] = []
    acts: Counter[str] = Counter()
    for seed in range(COUNT):
        place, done = tampered(archive, seed)
        acts[done.act] += 1
        try:
            alone = verify_archive(archive)
            if done.shown is Shown.VERIFY:
                wrong.append(_wrongly_reported(alone, done))
            elif done.shown is Shown.REPLAY:
                wrong.append(_wrongly_replayed(archive, done))
            else:
                if done.topic.value != "epochs" and alone.faults:
                    wrong.append(f"{done} is reported without heads, which nobody can: {alone.faults[0].line()}")
                wrong.append(_wrongly_reported(verify_archive(archive, witness=Witness(heads)), done))
        finally:
            place.put_back()
    assert [text for text in wrong if text] == []
    assert len(acts) >= min(COUNT, len(ACTS))
    assert verify_archive(archive, witness=Witness(heads)).faults == []
