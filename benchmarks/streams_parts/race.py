"""Runs workers of one variant over preloaded messages and reads what they report."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

JOIN_SECONDS = 90.0
RUN_SECONDS = 1800.0


@dataclass(frozen=True, slots=True)
class Lap:
    """groups: in all. wall: from the first worker's start to the last one's end, seconds. cpu: of all workers."""

    variant: str
    workers: int
    groups: int
    wall: float
    cpu: float
    resident: tuple[tuple[int, int], ...]

    @property
    def groups_per_second(self) -> float:
        return self.groups / self.wall

    @property
    def cpu_microseconds(self) -> float:
        """Processor time of the workers per group."""
        return self.cpu / self.groups * 1e6


def lap(
    variant: str, broker: str, prefix: str, ends: Sequence[int], groups: int, *, workers: int = 1, python: str = ""
) -> Lap:
    """One variant from its start to the end of the messages."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        names = [f"worker{number}" for number in range(workers)]
        processes = [_start(variant, broker, prefix, ends, folder, name, python) for name in names]
        try:
            _await_joined(folder, names, len(ends), processes)
            (folder / "go").touch()
            reports = [_report(folder, name, process) for name, process in zip(names, processes, strict=True)]
        finally:
            for process in processes:
                process.kill()
                process.wait()
    wall = max(report["ended"] for report in reports) - min(report["started"] for report in reports)
    resident = tuple([(count, size) for count, size in reports[0]["resident"]])
    return Lap(variant, workers, groups, wall, sum(report["cpu"] for report in reports), resident)


def _start(
    variant: str, broker: str, prefix: str, ends: Sequence[int], folder: Path, name: str, python: str
) -> "subprocess.Popen[bytes]":
    module = "benchmarks.streams_parts.quix_worker" if variant == "quix" else "benchmarks.streams_parts.worker"
    counts = ",".join(map(str, ends))
    command = [
        python if variant == "quix" else sys.executable,
        "-m",
        module,
        variant,
        broker,
        prefix,
        str(len(ends)),
        str(folder),
        name,
        counts,
    ]
    return subprocess.Popen(command)


def _await_joined(
    folder: Path, names: Sequence[str], partitions: int, processes: Sequence["subprocess.Popen[bytes]"]
) -> None:
    """Returns once every partition is some worker's and each has its share."""
    share = partitions // len(names)
    end = time.monotonic() + JOIN_SECONDS
    while time.monotonic() < end:
        if any(process.poll() is not None for process in processes):
            raise RuntimeError("a worker of the benchmark ended before it began")
        held = [json.loads(path.read_text() or "[]") for name in names if (path := folder / f"{name}.joined").exists()]
        if len(held) == len(names) and all(len(part) == share for part in held):
            return
        time.sleep(0.05)
    raise RuntimeError("the workers of the benchmark did not share the partitions")


def _report(folder: Path, name: str, process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    end = time.monotonic() + RUN_SECONDS
    path = folder / f"{name}.json"
    while not path.exists() and time.monotonic() < end:
        if process.poll() is not None and not path.exists():
            raise RuntimeError("a worker of the benchmark ended without a report")
        time.sleep(0.02)
    found: dict[str, Any] = json.loads(path.read_text())
    return found
