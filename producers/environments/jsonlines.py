"""JSON lines from anywhere, read within limits; an error names the line."""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from producers.environments.errors import TaskSourceError

LINE_BYTES = 16 * 1024 * 1024
LINES = 1_000_000


class Record(BaseModel):
    """A record read from a line: types as written, no unknown keys."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


R = TypeVar("R", bound=Record)


def read_records(path: Path, kind: type[R]) -> Iterator[tuple[int, R]]:
    """The records of a file with their line numbers, from 1; blank lines are skipped. Raises TaskSourceError."""
    for number, line in read_lines(path):
        yield number, _record(path, number, line, kind)


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not blank, with their numbers from 1. Raises TaskSourceError."""
    try:
        with path.open("rb") as file:
            for number in range(1, LINES + 2):
                line = file.readline(LINE_BYTES + 1)
                if not line:
                    return
                if number > LINES or len(line) > LINE_BYTES:
                    raise broken(path, number, f"more than {LINES} lines or {LINE_BYTES} bytes in a line")
                if line.strip():
                    yield number, line
    except OSError as error:
        raise TaskSourceError(f"{path} cannot be read: {error.strerror}") from None


def broken(path: Path, number: int, reason: str) -> TaskSourceError:
    """The error for a line that is no record."""
    return TaskSourceError(f"{path} line {number}: {reason}")


def flaw(error: ValidationError) -> str:
    """The first flaw of a record, with its place where it has one."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"])[:80]
    reason = first["msg"].splitlines()[0][:200]
    return f"{place}: {reason}" if place else reason


def _record(path: Path, number: int, line: bytes, kind: type[R]) -> R:
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        raise broken(path, number, flaw(error)) from None
