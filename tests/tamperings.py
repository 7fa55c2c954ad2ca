"""``python -m tests.tamperings --acts 1000``: seeded acts of tampering with an archive, each reported in its place.

Prints each act that is not, and how many of each kind there were. Exit code 1: one was not reported, or elsewhere.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from schemas.topics import Topic
from streams.archive.heads import HEADS, sign, take_heads, write_heads
from streams.audit.compare.limits import Provenance
from streams.audit.load.source import ArchiveSource
from streams.audit.replay import ReplayOptions, replay
from streams.audit.verify.archive import Verification, Witness, run_of, verify_archive
from streams.audit.verify.fault import Fault
from tests.streams.audit.tamper import Shown, Tampering, resegmented, tampered

GOLDEN = Path(__file__).parent / "golden" / "archives" / "defaults"
_KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))


@dataclass(slots=True)
class Tampered:
    """What some acts came to. wrong: a sentence for each that was not reported as it must be."""

    acts: Counter[str] = field(default_factory=Counter)
    edited: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Target:
    """An archive of many small segments, signed, and the heads that were kept elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.archive = folder / "archive"
        resegmented(GOLDEN, self.archive)
        run, _ = run_of(self.archive)
        assert run
        heads = take_heads(self.archive, run)
        write_heads(sign(heads, _KEY), self.archive / HEADS)
        self.witnesses = {"heads": Witness(heads), "the public key alone": Witness(key=_KEY.public_key())}

    def sound(self) -> bool:
        """Whether neither the archive alone nor a witness finds a fault."""
        found = [verify_archive(self.archive, witness=witness) for witness in (None, *self.witnesses.values())]
        return all(result.sound for result in found)

    def tamper(self, seeds: Iterable[int]) -> Tampered:
        """Does what each seed draws, looks whether it is reported, and puts it back."""
        found = Tampered()
        for seed in seeds:
            place, done = tampered(self.archive, seed)
            found.acts[done.act] += 1
            if done.kind:
                found.edited[done.kind] += 1
            try:
                found.wrong += [text for text in self._wrong(done) if text]
            finally:
                place.put_back()
        return found

    def _wrong(self, done: Tampering) -> Iterable[str]:
        if done.shown is Shown.REPLAY:
            yield _wrongly_replayed(self.archive, done)
            return
        alone = verify_archive(self.archive)
        if done.shown is Shown.VERIFY:
            yield _wrongly_reported(alone, done)
            return
        if done.topic is not Topic.EPOCHS and alone.faults:
            yield f"{done} is reported without heads, which nobody can: {alone.faults[0].line()}"
        for name, witness in self.witnesses.items():
            wrong = _wrongly_reported(verify_archive(self.archive, witness=witness), done)
            yield f"by {name}: {wrong}" if wrong else ""


def _in_place(fault: Fault, done: Tampering) -> bool:
    folder, _, name = fault.file.rpartition("/")
    if folder != done.folder or name not in done.files or fault.offset is None:
        return False
    return fault.offset <= done.last and done.first <= (fault.offset if fault.last is None else fault.last)


def _wrongly_reported(result: Verification, done: Tampering) -> str:
    """Why a report is not that of the act; empty where it is."""
    if not result.faults:
        return f"{done} is not reported"
    if not _in_place(result.faults[0], done):
        return f"{done} is reported elsewhere: {result.faults[0].line()}"
    if done.exact is not None and not any(fault.offset == done.exact for fault in result.faults):
        return f"{done} is not placed at its offset: {[fault.line() for fault in result.faults]}"
    return ""


def _wrongly_replayed(archive: Path, done: Tampering) -> str:
    """Why a replay does not find the edited decision; empty where it does."""
    report = replay(ArchiveSource(archive), ReplayOptions(None, "", 1), Provenance("", {}))
    places = [divergence.place for divergence in report.divergences]
    expected = f"{done.folder}/{done.files[0]} at offset {done.exact}"
    return "" if expected in places else f"{done} is not found by replay: {places}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--acts", type=int, default=1000)
    parser.add_argument("--first-seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        target = Target(Path(folder))
        found = target.tamper(range(arguments.first_seed, arguments.first_seed + arguments.acts))
        sound = target.sound()
    for text in found.wrong:
        print(text)
    for name, count in (*sorted(found.acts.items()), *sorted(found.edited.items())):
        print(f"{count:6d}  {name}")
    print(f"{arguments.acts - len(found.wrong)} of {arguments.acts} acts are reported in their place")
    sys.exit(0 if sound and not found.wrong else 1)


if __name__ == "__main__":
    main()
