from pathlib import Path

import pytest

from learner.cuts import PENDING, Cuts, Pending, cut_name, read_pending, record_pending, step_of, write_pending
from schemas.topics import Topic
from streams.archive.cut import read_cuts, record_cut
from tests.archives import record, seal


def test_a_cut_is_named_by_the_newest_checkpoint_of_its_step(tmp_path: Path) -> None:
    for name in ("checkpoint-000004-g0001-aa", "checkpoint-000004-g0002-bb", "checkpoint-000003-g0003-cc"):
        (tmp_path / name).mkdir()
    assert cut_name(4, tmp_path) == "checkpoint-000004-g0002-bb"
    assert cut_name(5, tmp_path) == "step-000005"
    assert cut_name(0, tmp_path) == "step-000000"


@pytest.mark.parametrize(("name", "step"), [("step-000012", 12), ("checkpoint-000007-g0001-ab", 7)])
def test_a_name_tells_its_step(name: str, step: int) -> None:
    assert step_of(name) == step


@pytest.mark.parametrize("name", ["", "step-", "epoch-3", "checkpoint-x", "../checkpoint-1"])
def test_another_name_tells_none(name: str) -> None:
    with pytest.raises(ValueError):
        step_of(name)


def test_steps_are_places_to_resume_from_only_where_that_is_asked_for(tmp_path: Path) -> None:
    assert not any(Cuts(tmp_path, tmp_path).due(step) for step in range(10))
    assert [step for step in range(1, 10) if Cuts(tmp_path, tmp_path, every=4).due(step)] == [4, 8]


def test_the_names_of_recorded_cuts_are_known(tmp_path: Path) -> None:
    assert Cuts(tmp_path, tmp_path).named() == set()
    record_cut(tmp_path, "checkpoint-000001-g0001-aa", {(Topic.POOL, 0): 0})
    assert Cuts(tmp_path, tmp_path).named() == {"checkpoint-000001-g0001-aa"}


def test_a_pending_cut_becomes_one_once_the_archive_holds_it(tmp_path: Path) -> None:
    waiting = [Pending("step-000001", {(Topic.POOL, 0): 2}), Pending("step-000002", {(Topic.POOL, 0): 5})]
    write_pending(tmp_path, waiting)
    assert record_pending(tmp_path) == [] and read_pending(tmp_path) == waiting
    assert Cuts(tmp_path, tmp_path).named() == {"step-000001", "step-000002"}
    seal(tmp_path, Topic.POOL, 0, map(record, range(4)))
    assert [cut.name for cut in record_pending(tmp_path)] == ["step-000001"]
    seal(tmp_path, Topic.POOL, 0, [record(4)])
    assert [(cut.number, cut.name) for cut in record_pending(tmp_path)] == [(2, "step-000002")]
    assert read_pending(tmp_path) == [] and len(read_cuts(tmp_path)) == 2


@pytest.mark.parametrize("text", ["", "{", "[1]", '[["a", {"nowhere/0": 1}]]', '[["a", []]]'])
def test_a_file_that_does_not_parse_holds_no_pending_cut(tmp_path: Path, text: str) -> None:
    (tmp_path / PENDING).write_text(text)
    assert read_pending(tmp_path) == []
