"""The folder of a run: who may write to it, and where everything in it lies.

A folder belongs to one run. It is claimed by creating `run.json`; a process that works on it holds a lock beside it, so
that two cannot. Nothing in a folder is overwritten by another run.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rods.errors import UserError
from rods.settings import EMBEDDED
from streams.archive.durable import make_folder, replace_durably, sync

FORMAT = 1


class _Inside:
    """A path in a run's folder, by its name there."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: "RunFolder", _: object = None) -> Path:
        return folder.path / self._name


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Paths in a run's folder. kafka: data of the run's own Kafka broker."""

    path: Path
    settings = _Inside("settings.json")
    archive = _Inside("archive")
    pools = _Inside("pools")
    policies = _Inside("policies")
    checkpoints = _Inside("checkpoints")
    warehouse = _Inside("warehouse")
    kafka = _Inside("kafka")
    logs = _Inside("logs")
    report = _Inside("report.html")
    summary = _Inside("summary.json")
    _stale = _Inside("warehouse.stale")
    _marker = _Inside("run.json")

    def ask_for_a_new_warehouse(self) -> None:
        """The warehouse holds what the log no longer does. It stays readable until its service begins anew."""
        self._stale.touch()

    def renew_warehouse(self) -> None:
        """Throws the warehouse away where that was asked for. For its service, which then builds it from the log."""
        if self._stale.exists():
            shutil.rmtree(self.warehouse, ignore_errors=True)
            self._stale.unlink()

    def create(self, run_id: str, broker: str = "") -> None:
        """Claims an empty or absent folder. broker: the kind of broker that the run's log is on. Raises UserError
        where the folder holds anything."""
        if self._marker.exists():
            self.check_format()
            raise UserError(f"the folder {self.path} holds a run already; name another with --folder")
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise UserError(f"{self.path} is not an empty folder; name another with --folder")
        try:
            make_folder(self.path, self.path)
            with self._marker.open("x", encoding="utf-8") as marker:
                json.dump({"format": FORMAT, "run": run_id, "broker": broker, "resumed": 0}, marker)
                marker.flush()
                os.fsync(marker.fileno())
            sync(self.path)
        except FileExistsError:
            raise UserError(f"the folder {self.path} holds a run already; name another with --folder") from None
        except OSError as error:
            reason = error.strerror
            raise UserError(f"the folder {self.path} cannot be made ({reason}); name another with --folder") from None

    @property
    def broker(self) -> str:
        """The kind of broker that the run's log is on; empty where the folder does not say."""
        return str(self._read_marker().get("broker", ""))

    @property
    def is_embedded(self) -> bool:
        """Whether the archive is the log of record."""
        return self.broker == EMBEDDED

    @property
    def resumed(self) -> int:
        """How often the run was resumed."""
        found = self._read_marker().get("resumed", 0)
        return found if isinstance(found, int) else 0

    def note_resumption(self, after: str) -> None:
        """Counts a resumption in `run.json`, with where it went on; the file appears complete and durable."""
        marker = {**self._read_marker(), "resumed": self.resumed + 1, "resumed_after": after}
        replace_durably(self._marker, json.dumps(marker).encode())

    def _read_marker(self) -> dict[str, Any]:
        try:
            marker = json.loads(self._marker.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return marker if isinstance(marker, dict) else {}

    def check_format(self) -> str:
        """The run's id. Raises UserError where the folder is no run folder, or of another version."""
        try:
            marker = self._read_marker()
            found, run = marker["format"], marker["run"]
        except KeyError:
            raise UserError(f"{self.path} is no run folder: it has no readable run.json") from None
        if found != FORMAT:
            raise UserError(
                f"the run folder {self.path} has format {found!r} and this version of rods reads {FORMAT}; "
                "use the version that wrote it"
            )
        return str(run)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the folder for this process. Raises UserError where another one has it."""
        try:
            descriptor = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UserError(f"the run folder {self.path} cannot be locked: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise UserError(f"another process works on the run folder {self.path}; wait for it to end") from None
        try:
            yield
        finally:
            os.close(descriptor)
