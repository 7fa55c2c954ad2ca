"""Becomes another program that dies with the process that started it, even when that one is killed.

Run as a file, ``python -I -S exec_with_parent.py PARENT COMMAND...``, so that nothing runs between fork and exec of a
threaded process. Linux keeps the death signal across exec; elsewhere the program runs without it. The signal follows
the *thread* that started the child: start children from one that lives as long as they should.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def guarded(command: list[str]) -> list[str]:
    """The command that runs `command`, the same process id, bound to the life of the caller."""
    return [sys.executable, "-I", "-S", str(Path(__file__).resolve()), str(os.getpid()), *command]


def _die_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)


def main(arguments: list[str]) -> None:
    """Binds this process to its parent and becomes the command."""
    _die_with(int(arguments[0]))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.execvp(arguments[1], arguments[1:])  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1:])
