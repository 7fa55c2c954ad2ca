import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from rods.cli.main import app
from rods.cli.run_log import say
from rods.errors import UserError
from schemas.pool import TaskRetired
from schemas.topics import Topic
from streams.audit.compare.divergence import Divergence
from streams.audit.drift.figures import EpochDrift
from tests.streams.audit.forge import GOLDEN, forge, places

RUN = str(GOLDEN / "windowed")
CLI_PAGE = (Path(__file__).resolve().parents[3] / "docs" / "cli.md").read_text()


def ran(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def document(*words: str) -> dict[str, Any]:
    result = ran(*words, "--json")
    assert result.exit_code in (0, 1), result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def keys(value: Any) -> set[str]:
    """Every key of a document; those that name epochs, zones or categories left out."""
    if isinstance(value, list):
        return {key for item in value for key in keys(item)}
    if not isinstance(value, dict):
        return set()
    named = {key for key in value if re.fullmatch(r"[a-z_]+", key)}
    return named | {key for inner in value.values() for key in keys(inner)}


def test_exit_codes_tell_a_divergence_from_agreement(tmp_path: Path) -> None:
    place, _ = places(GOLDEN / "windowed", Topic.POOL, lambda event: isinstance(event, TaskRetired))[0]
    forged = forge(GOLDEN / "windowed", tmp_path, place, lambda event: replace(event, visits=77))
    assert ran("audit", "replay", RUN).exit_code == 0
    assert ran("audit", "replay", str(forged)).exit_code == 1
    assert ran("audit", "replay", str(forged), "--to-epoch", "1").exit_code == 0
    found = document("audit", "replay", str(forged))
    assert (found["agrees"], found["first"]["path"], found["first"]["recorded"]) == (False, "visits", "77")


@pytest.mark.slow
def test_a_finding_is_told_by_the_exit_code_and_the_page_is_written(tmp_path: Path) -> None:
    assert ran("audit", "drift", RUN).exit_code == 1
    calm = [f"--limit={name}=99" for name in ("psi", "jensen_shannon", "flip_share")]
    result = ran("audit", "drift", RUN, *calm, "--html", str(tmp_path / "drift.html"), "--columns", str(tmp_path / "c"))
    assert result.exit_code == 0
    assert "no finding" in result.stdout
    assert (tmp_path / "drift.html").read_text().startswith("<!doctype html>")
    assert list((tmp_path / "c").rglob("*.parquet"))


def test_every_key_of_every_document_is_documented() -> None:
    one, other = str(GOLDEN / "retiring"), str(GOLDEN / "retiring-otherwise")
    told = keys(document("audit", "replay", RUN)) | keys(document("audit", "drift", RUN))
    told |= keys(document("audit", "what-if", one, "--set", "pool.patience=2")) | keys(
        document("audit", "diff", one, other)
    )
    told |= {field.name for kind in (Divergence, EpochDrift) for field in fields(kind)}
    names = {"mastered", "boundary", "hard", "none", "base", "long_context", "miss_func", "miss_param"}
    undocumented = {key for key in told - names if f"`{key}`" not in CLI_PAGE}
    assert {key for key in undocumented if not key.endswith(("_added", "_dropped"))} == set()


def test_what_cannot_be_audited_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for words in (
        ("audit", "replay"),
        ("audit", "replay", str(tmp_path / "empty")),
        ("audit", "replay", RUN, "--broker", "127.0.0.1:1"),
        ("audit", "drift", RUN, "--limit", "psi=much"),
        ("audit", "drift", RUN, "--reference", "9"),
        ("audit", "what-if", RUN, "--set", "rollout.k=4"),
        ("trace", RUN, "nobody"),
        ("trace", RUN),
        ("pool", "show", RUN, "--at-epoch", "9"),
    ):
        result = ran(*words)
        assert isinstance(result.exception, UserError), (words, result.output)
        assert "\n" not in str(result.exception)


def test_a_task_can_be_traced_and_its_pool_exported(tmp_path: Path) -> None:
    task = next(iter(document("audit", "what-if", RUN)["epochs"][1]["injections"]))
    root = document("trace", RUN, task)
    assert (root["task"], root["tasks"][0]["parent"]) == (task, None)
    header = document("pool", "export", RUN, "--at-epoch", "2", "--to", str(tmp_path))
    assert header["agrees"]
    assert len(Path(header["jsonl"]).read_text().splitlines()) == header["members"]
    assert Path(header["parquet"]).exists()


def test_what_a_terminal_would_act_on_is_shown_and_not_sent(capsys: pytest.CaptureFixture[str]) -> None:
    say("a task named \x1b[2J\x07 é\u202e")
    assert capsys.readouterr().out == "a task named \\x1b[2J\\x07 é\\u202e\n"
