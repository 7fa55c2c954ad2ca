"""What every command does: a closed pipe ends it quietly."""

import subprocess
import sys
from pathlib import Path

import pytest

from rods.cli.main import NOBODY_READS

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "archives" / "windowed"


@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize("words", [("tasks", "list"), ("pool", "show", str(GOLDEN))])
def test_a_command_ends_quietly_where_nobody_reads_its_output(words: tuple[str, ...], buffered: str) -> None:
    command = [sys.executable, "-m", "rods", *words]
    environment = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": buffered}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=ROOT
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == NOBODY_READS
