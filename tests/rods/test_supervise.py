import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rods.supervise import (
    Death,
    RestartLimits,
    Supervisor,
    WorkerKeepsDyingError,
    WorkerSpec,
    WorkerState,
    last_words,
)
from tests.rods.processes import alive

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
PATIENT = "import time; print('up', flush=True); time.sleep(60)"


def _spec(folder: Path, code: str, name: str = "w", **settings: object) -> WorkerSpec:
    return WorkerSpec(name, (sys.executable, "-c", code), folder / f"{name}.log", **settings)  # type: ignore[arg-type]


async def _until_up(log: Path, times: int = 1) -> None:
    while not log.exists() or log.read_text().count("up") < times:
        await asyncio.sleep(0.02)


async def test_a_killed_worker_starts_again_under_another_pid(tmp_path: Path) -> None:
    deaths: list[Death] = []
    async with Supervisor([_spec(tmp_path, PATIENT)], deaths.append) as supervisor:
        await _until_up(tmp_path / "w.log")
        first = supervisor.pids["w"]
        os.kill(first, signal.SIGKILL)
        await _until_up(tmp_path / "w.log", 2)
        assert supervisor.pids["w"] != first
        assert supervisor.states["w"] is WorkerState.RUNNING
        assert supervisor.deaths["w"] == 1
    assert [(death.pid, death.cause) for death in deaths] == [(first, "signal SIGKILL")]


async def test_a_worker_that_keeps_dying_ends_the_run_with_its_last_words(tmp_path: Path) -> None:
    limits = RestartLimits(restarts=2, first_pause=0.01)
    spec = _spec(tmp_path, "print('no such model'); raise SystemExit(3)", limits=limits)
    async with Supervisor([spec]) as supervisor:
        with pytest.raises(WorkerKeepsDyingError, match=r"w worker keeps dying \(exit code 3, 3 times\)") as error:
            await supervisor.watch()
        assert supervisor.states["w"] is WorkerState.KEEPS_DYING
    assert error.value.last_words.splitlines() == ["no such model"] * 3


async def test_exit_code_0_is_a_death_unless_the_worker_may_finish(tmp_path: Path) -> None:
    limits = RestartLimits(restarts=0)
    specs = [_spec(tmp_path, "", "ends", may_finish=True), _spec(tmp_path, PATIENT, "other")]
    async with Supervisor(specs) as supervisor:
        while supervisor.states["ends"] is not WorkerState.FINISHED:
            await asyncio.sleep(0.01)
    async with Supervisor([_spec(tmp_path, "", "dies", limits=limits)]) as supervisor:
        with pytest.raises(WorkerKeepsDyingError):
            await supervisor.watch()


async def test_a_worker_that_ignores_sigterm_is_killed_within_the_grace_period(tmp_path: Path) -> None:
    async with Supervisor([_spec(tmp_path, STUBBORN)]) as supervisor:
        await _until_up(tmp_path / "w.log")
        pid = supervisor.pids["w"]
        await supervisor.stop(0.3)
        assert not alive(pid)
        assert supervisor.states["w"] is WorkerState.STOPPED
        assert supervisor.pids == {}


async def test_workers_stop_in_order_and_none_starts_again(tmp_path: Path) -> None:
    note = (
        "import signal, sys, time; from pathlib import Path\n"
        f"def end(*_): Path({str(tmp_path)!r}, 'order').open('a').write(sys.argv[1]); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end); print('up', flush=True); time.sleep(60)"
    )
    specs = [
        WorkerSpec(name, (sys.executable, "-c", note, name), tmp_path / f"{name}.log", stop_order=order)
        for name, order in (("c", 2), ("a", 0), ("b", 1))
    ]
    async with Supervisor(specs) as supervisor:
        for name in "abc":
            await _until_up(tmp_path / f"{name}.log")
        await supervisor.stop(below=2)
        assert set(supervisor.pids) == {"c"}
    assert (tmp_path / "order").read_text() == "abc"
    assert set(supervisor.states.values()) == {WorkerState.STOPPED}


async def test_a_killed_worker_takes_its_own_children_along_when_the_run_stops(tmp_path: Path) -> None:
    code = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print('up', child.pid, flush=True); time.sleep(60)"
    )
    async with Supervisor([_spec(tmp_path, code)]) as supervisor:
        await _until_up(tmp_path / "w.log")
        child = int((tmp_path / "w.log").read_text().split()[1])
        await supervisor.stop(0.2)
    while alive(child):
        await asyncio.sleep(0.02)


def test_workers_die_with_a_killed_supervisor(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys; from pathlib import Path; from rods.supervise import Supervisor, WorkerSpec\n"
        "async def main():\n"
        "    spec = WorkerSpec('w', (sys.executable, '-c', 'import time; time.sleep(60)'), Path(sys.argv[1]))\n"
        "    async with Supervisor([spec]) as supervisor:\n"
        "        while not supervisor.pids: await asyncio.sleep(0.01)\n"
        "        print(supervisor.pids['w'], flush=True); await asyncio.sleep(60)\n"
        "asyncio.run(main())"
    )
    root = Path(__file__).resolve().parents[2]
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "w.log")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    while alive(worker):
        time.sleep(0.02)


def test_last_words_are_the_end_of_a_long_log(tmp_path: Path) -> None:
    log = tmp_path / "w.log"
    log.write_text("\n".join(f"line {number}" for number in range(10_000)))
    assert last_words(log).splitlines()[-1] == "line 9999"
    assert len(last_words(log).splitlines()) == 20
    assert last_words(tmp_path / "none.log") == ""
