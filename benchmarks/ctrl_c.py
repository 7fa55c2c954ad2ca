"""How long a run takes to end after Ctrl-C: ``python -m benchmarks.ctrl_c`` (``--broker kafka`` needs KAFKA_HOME).

Each trial starts a scripted run of the whole loop, sends SIGINT to `rods run` after some seconds, and measures until it
has ended. Exit code 1 where one took more than ten seconds, ended otherwise than interrupted, or left a process behind.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

LIMIT_SECONDS = 10.0


def trial(broker: str, after: float) -> dict[str, object]:
    """after: seconds from the start of the run to the signal."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--policy", "scripted", "--epochs", "50", "--broker", broker, "--folder", str(Path(folder) / "run")]
        run = subprocess.Popen(
            [sys.executable, "-m", "rods", "run", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(after)
        started = psutil.Process(run.pid).children(recursive=True)
        begin = time.monotonic()
        run.send_signal(signal.SIGINT)
        run.wait()
        seconds = time.monotonic() - begin
        left = [process for process in started if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
    return {"seconds": round(seconds, 2), "exit_code": run.returncode, "processes": len(started), "left": len(left)}


def main() -> int:
    """Prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--broker", choices=["embedded", "kafka"], default="embedded")
    parser.add_argument("--after", type=float, nargs="+", default=[2.0, 8.0, 20.0], help="seconds, a trial each")
    chosen = parser.parse_args()
    trials = [trial(chosen.broker, after) for after in chosen.after]
    sys.stdout.write(json.dumps({"broker": chosen.broker, "trials": trials}, indent=2) + "\n")
    good = all(
        isinstance(found["seconds"], float)
        and found["seconds"] <= LIMIT_SECONDS
        and found["exit_code"] == 130
        and not found["left"]
        for found in trials
    )
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
