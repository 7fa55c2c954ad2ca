"""``rods audit verify`` and ``rods archive`` as a user meets them."""

import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from rods.brokers.embedded import EmbeddedBroker
from rods.cli.main import app
from rods.errors import UserError
from streams.audit.verify.fault import FaultKind

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden" / "archives" / "defaults"
CLI_PAGE = (ROOT / "docs" / "cli.md").read_text()


def ran(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN, tmp_path / "archive"))


def spoiled(archive: Path) -> Path:
    """The archive with a byte changed in two segments."""
    for path in sorted(archive.glob("rollouts/*/*.avro"))[:2]:
        data = bytearray(path.read_bytes())
        data[-30] ^= 1
        path.write_bytes(bytes(data))
    return archive


def test_a_sound_archive_ends_with_0_and_a_spoiled_one_with_1_and_its_first_fault(archive: Path) -> None:
    sound = ran("audit", "verify", archive)
    assert sound.exit_code == 0
    assert "no fault" in sound.stdout
    assert "no heads were given" in sound.stdout
    found = ran("audit", "verify", spoiled(archive))
    assert found.exit_code == 1
    faults = [line for line in found.stdout.splitlines() if line.startswith("  ")]
    assert len(faults) == 1
    assert re.match(r"  rollouts/00000/0{20}-\d{20}\.avro, offset 0 to \d+: the file's bytes are not those", faults[0])
    assert sum(line.startswith("  ") for line in ran("audit", "verify", archive, "--all").stdout.splitlines()) > 1


def test_the_documents_keys_are_documented(archive: Path) -> None:
    document = json.loads(ran("audit", "verify", spoiled(archive), "--json").stdout)
    keys = document.keys() | document["faults"][0].keys() | {kind.value for kind in FaultKind}
    assert [key for key in sorted(keys) if f"`{key}`" not in CLI_PAGE] == []
    heads = json.loads(ran("archive", "heads", GOLDEN).stdout)
    keys = heads.keys() | heads["heads"][0].keys()
    assert [key for key in sorted(keys) if f"`{key}`" not in CLI_PAGE] == []


def test_heads_kept_elsewhere_and_a_key_show_that_a_tail_was_cut_off(archive: Path, tmp_path: Path) -> None:
    assert ran("archive", "keygen", tmp_path / "key").exit_code == 0
    kept = tmp_path / "heads.json"
    kept.write_text(ran("archive", "heads", archive, "--key", tmp_path / "key").stdout)
    witnesses = [("--heads", kept), ("--public-key", tmp_path / "key.pub")]
    witnesses += [(*witnesses[0], *witnesses[1])]  # type: ignore[list-item]
    for witness in witnesses:
        assert ran("audit", "verify", archive, *witness).exit_code == 0
    for path in (archive / "synthesis" / "00000").iterdir():
        path.unlink()
    assert ran("audit", "verify", archive).exit_code == 0
    for witness in witnesses:
        found = ran("audit", "verify", archive, *witness)
        assert found.exit_code == 1
        assert "synthesis/00000/manifest.jsonl, offset 0 to" in found.stdout


def test_an_archive_is_copied_and_restored_by_command(archive: Path, tmp_path: Path) -> None:
    first = json.loads(ran("archive", "copy", archive, tmp_path / "copy", "--json").stdout)
    again = json.loads(ran("archive", "copy", archive, tmp_path / "copy", "--json").stdout)
    assert (first["segments"], first["present"]) == (again["present"], again["segments"])
    with EmbeddedBroker(tmp_path / "log") as broker:
        words = ("archive", "restore", tmp_path / "copy", "--broker", broker.address)
        restored = json.loads(ran(*words, "--json").stdout)
        assert (restored["partitions"], restored["cut"]) == (4, None)
        assert restored["records"] == json.loads(ran("audit", "verify", archive, "--json").stdout)["records"]
        refused = ran(*words)
    assert isinstance(refused.exception, UserError)
    assert "restored into empty topics" in str(refused.exception)


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "verify", "none"),
        ("audit", "verify", GOLDEN, "--heads", "none"),
        ("audit", "verify", GOLDEN, "--public-key", "none"),
        ("archive", "heads", "none"),
        ("archive", "heads", GOLDEN, "--key", "none"),
        ("archive", "copy", "none", "copy"),
        ("archive", "copy", GOLDEN, "nowhere://x"),
        ("archive", "restore", "none", "--broker", "127.0.0.1:1"),
        ("archive", "restore", GOLDEN, "--broker", "nonsense"),
        ("archive", "restore", GOLDEN, "--broker", "127.0.0.1:1", "--cut", "7"),
        ("archive", "keygen", "nowhere/at/all"),
    ],
)
def test_a_users_error_is_one_sentence(
    words: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = ran(*words)
    assert isinstance(result.exception, UserError), result.output
    assert "\n" not in str(result.exception)
    assert list(tmp_path.iterdir()) == []
