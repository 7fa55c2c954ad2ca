import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rods.errors import UserError
from rods.run_folder import RunFolder

ROOT = Path(__file__).resolve().parents[2]


def test_an_absent_or_empty_folder_can_be_claimed(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "new" / "deep"):
        folder = RunFolder(path)
        folder.create("r1")
        assert folder.check_format() == "r1"


def test_a_second_run_on_the_same_folder_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.create("first")
    before = sorted((path.name, path.read_bytes()) for path in folder.path.iterdir())
    with pytest.raises(UserError, match="holds a run already; name another with --folder"):
        folder.create("second")
    assert sorted((path.name, path.read_bytes()) for path in folder.path.iterdir()) == before


def test_a_folder_with_other_things_in_it_and_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for path in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(UserError, match="is not an empty folder; name another with --folder"):
            RunFolder(path).create("r")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be made"):
        RunFolder(tmp_path / "file" / "run").create("r")


def test_the_folder_of_another_version_is_refused_for_reading_and_for_a_run(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"format": 7, "run": "r"}))
    for use in (RunFolder(tmp_path).check_format, lambda: RunFolder(tmp_path).create("other")):
        with pytest.raises(UserError, match="format 7 and this version of rods reads 1; use the version"):
            use()


@pytest.mark.parametrize("marker", ["", "{", "[]", "null", '{"format": 1}'])
def test_a_folder_without_a_readable_marker_is_no_run_folder(tmp_path: Path, marker: str) -> None:
    (tmp_path / "run.json").write_text(marker)
    with pytest.raises(UserError, match="is no run folder"):
        RunFolder(tmp_path).check_format()


def test_a_folder_is_locked_for_one_process_at_a_time(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    other = RunFolder(tmp_path).locked()
    with folder.locked(), pytest.raises(UserError, match="another process works on the run folder"), other:
        pass
    with folder.locked():
        pass


def test_the_lock_of_a_process_that_died_is_free(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from rods.run_folder import RunFolder\n"
        "lock = RunFolder(Path(sys.argv[1])).locked(); lock.__enter__(); os.kill(os.getpid(), 9)"
    )
    died = subprocess.run([sys.executable, "-c", code, str(tmp_path)], env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert died.returncode == -9
    with RunFolder(tmp_path).locked():
        pass


def test_the_lock_of_no_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be locked"), RunFolder(tmp_path / "none").locked():
        pass


def test_a_warehouse_stays_until_its_service_begins_anew(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.warehouse.mkdir()
    (folder.warehouse / "rows").touch()
    folder.renew_warehouse()
    folder.ask_for_a_new_warehouse()
    assert (folder.warehouse / "rows").exists()
    folder.renew_warehouse()
    assert not folder.warehouse.exists()
    folder.warehouse.mkdir()
    folder.renew_warehouse()
    assert folder.warehouse.exists()
