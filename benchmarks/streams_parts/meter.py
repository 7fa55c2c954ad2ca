"""What a worker of the benchmark counts: from the moment it may begin to the end of its partitions."""

import cProfile
import json
import os
import resource
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PROFILE = "STREAMS_BENCHMARK_PROFILE"
"""Names a file: the worker's profile is written there. The figures of such a run are none."""
SAMPLE = 2000


@dataclass(slots=True)
class Meter:
    """folder: where workers and the benchmark meet. ends: the end offset of each partition."""

    folder: Path
    name: str
    ends: Sequence[int]
    messages: int = 0
    started: float = 0.0
    cpu: float = 0.0
    left: dict[int, int] = field(default_factory=dict)
    resident: list[tuple[int, int]] = field(default_factory=list)
    profile: cProfile.Profile | None = None

    def joined(self, partitions: Collection[int]) -> None:
        """The worker holds these partitions and waits for `may_go`."""
        self.left = {number: self.ends[number] - 1 for number in partitions if self.ends[number]}
        (self.folder / f"{self.name}.joined").write_text(json.dumps(sorted(partitions)))

    @property
    def may_go(self) -> bool:
        return (self.folder / "go").exists()

    def go(self) -> None:
        """From here on time counts."""
        self.started, self.cpu = time.monotonic(), time.process_time()
        if PROFILE in os.environ:
            self.profile = cProfile.Profile()
            self.profile.enable()

    def tick(self, partition: int, offset: int) -> None:
        """After a message is dealt with. The last one ends the process."""
        self.messages += 1
        if self.messages % SAMPLE == 0:
            self.resident.append((self.messages, resident_bytes()))
        if self.left.get(partition) == offset:
            del self.left[partition]
            if not self.left:
                self._report()

    def _report(self) -> None:
        ended, cpu = time.monotonic(), time.process_time() - self.cpu
        if self.profile:
            self.profile.disable()
            self.profile.dump_stats(os.environ[PROFILE])
        found = {"started": self.started, "ended": ended, "cpu": cpu, "resident": self.resident}
        scratch = self.folder / f"{self.name}.partial"
        scratch.write_text(json.dumps(found))
        scratch.replace(self.folder / f"{self.name}.json")
        os._exit(0)


def resident_bytes() -> int:
    """Of this process, now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()
