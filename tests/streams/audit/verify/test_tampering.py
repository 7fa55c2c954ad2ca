"""Seeded acts of tampering, each reported in its place. ``make tamper ARGS="--acts 10000"`` does more of them."""

import pytest

from tests.streams.audit.tamper import ACTS, DECISIONS
from tests.tamperings import Target

COUNT, PARTS = 1000, 4


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    return Target(tmp_path_factory.mktemp("tampering"))


def test_the_untouched_archive_is_sound(target: Target) -> None:
    assert target.sound()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_act_of_tampering_is_reported_in_its_place(target: Target, part: int) -> None:
    size = COUNT // PARTS
    found = target.tamper(range(part * size, (part + 1) * size))
    assert found.wrong == []
    assert len(found.acts) == len(ACTS)
    assert target.sound(), "what was done is put back"


def test_every_kind_of_decision_is_edited(target: Target) -> None:
    seeds = [seed for seed in range(60 * len(ACTS)) if seed % len(ACTS) == len(ACTS) - 1]
    found = target.tamper(seeds)
    assert found.wrong == []
    assert found.edited.keys() == {kind.KIND for kind in DECISIONS}
