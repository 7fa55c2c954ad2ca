import json
from pathlib import Path

import pytest

from schemas.topics import DOWNSTREAM_FIRST, Topic
from streams.archive.cut import CUTS, read_cuts, record_cut
from streams.archive.errors import ArchiveError
from tests.archives import record, seal


def _archived(folder: Path, records: int) -> None:
    seal(folder, Topic.POOL, 0, map(record, range(records)))


def test_a_cut_is_read_back_as_recorded_and_chained(tmp_path: Path) -> None:
    _archived(tmp_path, 5)
    first = record_cut(tmp_path, "epoch-1", {(Topic.POOL, 0): 3})
    second = record_cut(tmp_path, "epoch-2", {(Topic.POOL, 0): 5, (Topic.SEALS, 0): 0})
    assert read_cuts(tmp_path) == (first, second)
    assert (first.number, second.number, second.previous) == (1, 2, first.sha256)
    assert (second.end(Topic.POOL, 0), second.end(Topic.SEALS, 0), second.end(Topic.EPOCHS, 0)) == (5, 0, 0)


def test_a_cut_that_the_archive_does_not_hold_is_not_recorded(tmp_path: Path) -> None:
    _archived(tmp_path, 2)
    with pytest.raises(ArchiveError, match=r"ends at 2 in pool/0, before the cut's 3"):
        record_cut(tmp_path, "too soon", {(Topic.POOL, 0): 3})
    assert read_cuts(tmp_path) == ()


def test_a_line_that_a_crash_cut_short_is_no_cut_and_the_next_replaces_it(tmp_path: Path) -> None:
    _archived(tmp_path, 2)
    first = record_cut(tmp_path, "one", {(Topic.POOL, 0): 1})
    with (tmp_path / CUTS).open("ab") as out:
        out.write(b'{"ends":{"pool/0":2},"na')
    assert read_cuts(tmp_path) == (first,)
    second = record_cut(tmp_path, "two", {(Topic.POOL, 0): 2})
    assert read_cuts(tmp_path) == (first, second)


@pytest.mark.parametrize(
    "change", [{"number": 2}, {"ends": {"pool/0": 9}}, {"previous": "x"}, {"sha256": ""}, {"more": 1}]
)
def test_cuts_that_were_edited_are_refused(tmp_path: Path, change: dict[str, object]) -> None:
    _archived(tmp_path, 2)
    record_cut(tmp_path, "one", {(Topic.POOL, 0): 1})
    line = json.loads((tmp_path / CUTS).read_text())
    (tmp_path / CUTS).write_text(json.dumps(line | change, sort_keys=True, separators=(",", ":")) + "\n")
    with pytest.raises(ArchiveError, match=r"line 1 of .*cuts\.jsonl is no cut"):
        read_cuts(tmp_path)


def test_ends_are_read_downstream_first() -> None:
    assert set(DOWNSTREAM_FIRST) == set(Topic)
    caused_by = {
        Topic.POOL: Topic.SYNTHESIS,
        Topic.SYNTHESIS: Topic.SEEDS,
        Topic.SEEDS: Topic.SEALS,
        Topic.SEALS: Topic.ROLLOUTS,
        Topic.MEASUREMENTS: Topic.ROLLOUTS,
        Topic.ROLLOUTS: Topic.ASSIGNMENTS,
        Topic.TRAJECTORIES: Topic.ASSIGNMENTS,
        Topic.ASSIGNMENTS: Topic.EPOCHS,
    }
    for effect, cause in caused_by.items():
        assert DOWNSTREAM_FIRST.index(effect) < DOWNSTREAM_FIRST.index(cause)
