"""From the settings of a run to the settings of each service, and to the processes of a run on one machine."""

import sys
from collections.abc import Callable
from pathlib import Path

from rods.brokers.connection import connection_of
from rods.run_folder import RunFolder
from rods.settings import EMBEDDED, PASSWORD_VARIABLE, Settings
from rods.supervise import RestartLimits, WorkerSpec

DRAIN_SECONDS = 100.0
"""Archive and warehouse take in what is left for as long as their supervisor lets them: long after a run that finished,
seconds after Ctrl-C, where the last cut is what a resume goes back to."""
LEARNER_LIMITS = RestartLimits(restarts=2, seconds=120.0)


_STOP_ORDER = {"learner": 0, "rollouts": 1, "synthesis": 1, "streams": 2, "archive": 3, "warehouse": 3}
"""Archive and warehouse stop last: they drain what the others wrote."""


def worker_specs(settings: Settings, settings_file: Path) -> list[WorkerSpec]:
    """The processes of a run."""
    counts = {
        "streams": settings.streams_workers,
        "rollouts": settings.rollout_workers,
        "synthesis": settings.synthesis_workers,
        "archive": 1,
        "warehouse": 1,
        "learner": 1,
    }
    return [
        _spec(settings, settings_file, service, service if count == 1 else f"{service}-{number}")
        for service, count in counts.items()
        for number in range(1, count + 1)
    ]


def _spec(settings: Settings, settings_file: Path, service: str, name: str) -> WorkerSpec:
    """A password goes by the environment, since the settings file does not hold it."""
    learns = service == "learner"
    command = ("learn",) if learns else (service, "work")
    password = settings.connection.password.get_secret_value()
    environment = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    return WorkerSpec(
        name=name,
        command=(sys.executable, "-m", "rods", *command, "--settings", str(settings_file)),
        log_file=RunFolder(settings.run_folder).logs / f"{name}.log",
        environment={**environment, **({PASSWORD_VARIABLE: password} if password else {})},
        stop_order=_STOP_ORDER[service],
        may_finish=learns,
        limits=LEARNER_LIMITS if learns else RestartLimits(),
    )


def run_streams_service(settings: Settings) -> None:
    from streams.service.worker import StreamsSettings, run_streams

    run_streams(
        StreamsSettings(
            broker=connection_of(settings),
            prefix=settings.prefix,
            partitions=settings.partitions,
            data_dir=settings.run_folder / "streams",
            metrics_port=settings.metrics_port,
            metrics_ports=settings.streams_workers,
        )
    )


def run_rollouts_service(settings: Settings) -> None:
    from producers.rollouts.worker import RolloutWorkerSettings, run_rollout_worker

    policy = settings.policy if settings.scripted else str(settings.policy_folder)
    run_rollout_worker(
        RolloutWorkerSettings(
            broker=connection_of(settings),
            prefix=settings.prefix,
            source=settings.rules.source,
            policy=policy,
            threads=settings.threads,
        )
    )


def run_synthesis_service(settings: Settings) -> None:
    from producers.synthesis.worker import SynthesisWorkerSettings, run_synthesis_worker

    run_synthesis_worker(
        SynthesisWorkerSettings(broker=connection_of(settings), prefix=settings.prefix, source=settings.rules.source)
    )


def run_archive_service(settings: Settings) -> None:
    from streams.archive.worker import ArchiveSettings, run_archive

    run_archive(
        ArchiveSettings(
            broker=connection_of(settings),
            prefix=settings.prefix,
            partitions=settings.partitions,
            folder=RunFolder(settings.run_folder).archive,
            drain_seconds=DRAIN_SECONDS,
        )
    )


def run_warehouse_service(settings: Settings) -> None:
    from streams.warehouse.sink import WarehouseSettings, run_warehouse

    if settings.warehouse == EMBEDDED:
        RunFolder(settings.run_folder).renew_warehouse()
    run_warehouse(
        WarehouseSettings(
            broker=connection_of(settings),
            prefix=settings.prefix,
            partitions=settings.partitions,
            dsn=warehouse_dsn(settings),
            dashboard_port=settings.dashboard_port,
            drain_seconds=DRAIN_SECONDS,
        )
    )


def run_learner_service(settings: Settings) -> None:
    from rods.learner_process import run_learner

    run_learner(settings)


def warehouse_dsn(settings: Settings) -> str:
    """The embedded engine's lies in the run folder."""
    if settings.warehouse != EMBEDDED:
        return settings.warehouse
    return f"chdb://{RunFolder(settings.run_folder).warehouse.resolve()}"


SERVICES: dict[str, Callable[[Settings], None]] = {
    "streams": run_streams_service,
    "rollouts": run_rollouts_service,
    "synthesis": run_synthesis_service,
    "archive": run_archive_service,
    "warehouse": run_warehouse_service,
    "learner": run_learner_service,
}
