"""Files and names that are still there when the power comes back."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_durably(path: Path, data: bytes) -> None:
    """Writes a file and makes its bytes durable; not its name."""
    with path.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def replace_durably(path: Path, data: bytes) -> None:
    """Writes a file over what is there, through one beside it: complete or not at all, bytes and name durable."""
    scratch = path.with_name(f".{path.name}.tmp")
    write_durably(scratch, data)
    scratch.replace(path)
    sync(path.parent)


def append_durably(path: Path, length: int, line: bytes) -> None:
    """Writes behind the first `length` bytes, over what a crash cut short there; the file's bytes are durable, its name
    is not."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        os.ftruncate(descriptor, length)
        os.pwrite(descriptor, line, length)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a lock file against other processes, and waits for them. The operating system gives it up for a killed
    one."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def make_folder(folder: Path, root: Path) -> None:
    """Makes a folder and what is missing above it, and makes every name down from that of `root` durable, whoever gave
    it: one that was killed may not have come to it. A folder that may not be read cannot be synced."""
    missing = [one for one in root.parents if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    named = [one for one in (folder, *folder.parents) if one.is_relative_to(root)]
    for one in (*named, *missing):
        with suppress(PermissionError):
            sync(one.parent)


def sync(path: Path) -> None:
    """Makes a file's bytes durable, or the names that were created or replaced in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
