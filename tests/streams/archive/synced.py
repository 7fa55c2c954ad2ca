"""The order in which files and names reach the disk."""

import os
from pathlib import Path

import pytest


def synced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path]]:
    """What is synced and named from now on, in order."""
    done: list[tuple[str, Path]] = []
    sync, name = os.fsync, Path.replace

    def fsync(descriptor: int) -> None:
        done.append(("sync", Path(os.readlink(f"/proc/self/fd/{descriptor}"))))
        sync(descriptor)

    def replace(path: Path, target: Path) -> Path:
        done.append(("name", target))
        return name(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    return done
