"""Whether a process that a test started still runs."""

from pathlib import Path


def alive(pid: int) -> bool:
    """False for one that has ended, also where nobody has waited for it yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
