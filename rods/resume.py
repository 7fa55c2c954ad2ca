"""A run that goes on where it stopped, however it stopped.

    run folder -> settings as recorded -> embedded: newest cut with a complete checkpoint -> restore into a fresh broker
        -> set aside what lies behind it -> workers, with a new generation of the learner
    a broker whose log survives: workers, with a new generation

The archive is the log of record of an embedded run; nothing in the folder changes before all of it up to the cut is
in the new broker. Everything here may be cut short and done again.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from pydantic import ValidationError

from eventlog.connection import Connection, client_options
from learner.checkpoint_files import check_checkpoint, saved_checkpoints
from learner.cuts import record_pending, step_of, write_pending
from learner.errors import CheckpointError
from rods.brokers.connection import connection_of
from rods.brokers.restored_topics import create_restored_topics
from rods.errors import UserError
from rods.run_folder import RunFolder
from rods.settings import EMBEDDED, KAFKA, Settings, read_resolved
from rods.wiring import warehouse_dsn
from rods.wrong_setting import wrong_setting
from schemas.codec import decode
from schemas.epochs import EpochClosed
from schemas.errors import UndecodableError
from schemas.topics import Topic
from streams.archive.cut import Cut, archived_end, place_name, read_cuts
from streams.archive.errors import ArchiveError
from streams.archive.read import read_partition
from streams.archive.restore import RestoreSettings, plans, restore
from streams.archive.set_aside import SetAside, set_aside

Say = Callable[[str], None]
BROKER_LOG = "broker-log"


@dataclass(frozen=True, slots=True)
class Resumption:
    """cut: what an embedded run goes on from; None where the broker's own log survives.
    skipped: why newer cuts do not serve.
    """

    settings: Settings
    folder: RunFolder
    cut: Cut | None
    skipped: tuple[str, ...] = ()


def resumed_settings(folder: RunFolder, changes: Mapping[str, Any], epochs: int | None = None) -> Settings:
    """The recorded settings, on the broker of its kind. changes: of what decides nothing. epochs: may be raised alone.

    Raises UserError for a folder that holds no run of this version, and for a change that is no valid setting.
    """
    run_id = folder.check_format()
    recorded = read_resolved(folder.settings)
    if recorded.run_id != run_id:
        raise UserError(f"{folder.settings} holds the settings of another run than {folder.path / 'run.json'}")
    rules = recorded.rules
    if epochs is not None and epochs < rules.epochs:
        raise UserError(f"the run {run_id} has {rules.epochs} epochs, which --epochs may only raise")
    if epochs is not None:
        rules = rules.model_copy(update={"epochs": epochs})
    own = folder.broker if folder.broker in (EMBEDDED, KAFKA) else None
    if own and changes.get("broker", own) != own:
        raise UserError(f"the log of the run {run_id} is on its own broker ({own}), and --broker cannot move it")
    update = {"folder": str(folder.path), "dashboard_port": 0, **({"broker": own} if own else {}), "rules": rules}
    try:
        return Settings.model_validate(recorded.model_copy(update={**update, **changes}).model_dump())
    except ValidationError as error:
        raise UserError(wrong_setting(error)) from error


def plan_resumption(folder: RunFolder, settings: Settings) -> Resumption:
    """Where to go on. The folder is locked by the caller. Raises UserError where there is nothing to go on from."""
    try:
        _refuse_finished(folder, settings)
        if settings.broker == KAFKA and not (folder.kafka / "data" / "meta.properties").is_file():
            raise UserError(f"{folder.kafka} holds no log of a broker to go on from; start a new run")
        if settings.broker != EMBEDDED:
            return Resumption(settings, folder, None)
        cut, skipped = choose_cut(folder, settings.scripted)
        _check_held(folder.archive, cut)
        plans(_restoring(settings, folder, cut))
    except ArchiveError as error:
        raise UserError(f"the archive of the run does not verify: {error}") from error
    return Resumption(settings, folder, cut, skipped)


def choose_cut(folder: RunFolder, scripted: bool) -> tuple[Cut, tuple[str, ...]]:
    """The newest cut whose checkpoint is complete, and why newer ones are not taken. Raises UserError, ArchiveError."""
    record_pending(folder.archive)
    skipped: list[str] = []
    for cut in reversed(read_cuts(folder.archive)):
        try:
            step = step_of(cut.name)
            if step and not scripted:
                check_checkpoint(folder.checkpoints / cut.name)
        except (ValueError, CheckpointError) as error:
            skipped.append(f"cut {cut.number} does not serve: {error}")
            continue
        return cut, tuple(skipped)
    if skipped:
        raise UserError(f"no cut of {folder.archive} has a whole checkpoint: {skipped[0]}")
    raise UserError(f"the run in {folder.path} stopped before its first cut, so nothing is lost by a new one")


def _check_held(archive: Path, cut: Cut) -> None:
    """Raises ArchiveError where the archive lacks anything before the cut, whole partitions too."""
    for (topic, number), end in cut.by_place().items():
        if archived_end(archive, topic, number) < end:
            raise ArchiveError(f"it ends before the cut's {end} in {place_name(topic, number)}")


def _refuse_finished(folder: RunFolder, settings: Settings) -> None:
    if not folder.archive.is_dir():
        return
    for record in read_partition(folder.archive, Topic.EPOCHS, 0):
        try:
            event = decode(record.value or b"")
        except UndecodableError:
            continue
        if isinstance(event, EpochClosed) and event.epoch >= settings.rules.epochs:
            epochs = settings.rules.epochs
            raise UserError(f"the run {settings.run_id} has finished its {epochs} epochs; raise them with --epochs")


def bring_back(resumption: Resumption, settings: Settings, say: Say) -> None:
    """Fills the fresh broker that `settings` names, and takes the folder back to the cut. Raises UserError."""
    folder, cut = resumption.folder, resumption.cut
    for reason in resumption.skipped:
        say(reason)
    if cut is None:
        folder.note_resumption(BROKER_LOG)
        return
    connection = connection_of(settings)
    try:
        records = asyncio.run(_restore(connection, settings, folder, cut))
        write_pending(folder.archive, [])
        aside = set_aside(folder.archive, cut)
    except ArchiveError as error:
        raise UserError(f"the archive of the run does not verify: {error}") from error
    later = _set_files_aside(folder, step_of(cut.name))
    asyncio.run(_forget_rows(settings, folder, cut, aside))
    folder.note_resumption(cut.name)
    say(f"goes on from cut {cut.number} ({cut.name}): {records} records are in the new broker")
    if aside.folder is not None:
        say(f"{aside.records} records behind the cut are set aside in {aside.folder}")
    if later:
        say(f"{later} checkpoints and weights behind the cut are set aside too")


def _restoring(settings: Settings, folder: RunFolder, cut: Cut) -> RestoreSettings:
    broker = Connection(settings.broker) if settings.starts_broker else connection_of(settings)
    return RestoreSettings(broker, settings.prefix, folder.archive, cut)


async def _restore(connection: Connection, settings: Settings, folder: RunFolder, cut: Cut) -> int:
    await create_restored_topics(connection, settings.prefix, settings.partitions)
    records = await restore(RestoreSettings(connection, settings.prefix, folder.archive, cut))
    await _pass_over_requests(connection, settings.prefix, cut)
    return records


async def _pass_over_requests(connection: Connection, prefix: str, cut: Cut) -> None:
    """Commits the rollout workers' group up to the cut: what was asked for before it is answered, or asked for again by
    the new learner. Without that they would begin with the oldest requests."""
    topic = Topic.ASSIGNMENTS
    ends = {TopicPartition(topic.named(prefix), n): end for (of, n), end in cut.by_place().items() if of is topic}
    consumer = AIOKafkaConsumer(group_id=f"{prefix}rollouts", enable_auto_commit=False, **client_options(connection))
    consumer.assign(list(ends))
    await consumer.start()
    try:
        await consumer.commit(ends)
    finally:
        await consumer.stop()


def _set_files_aside(folder: RunFolder, step: int) -> int:
    """Moves later checkpoints, and all weights of samplers: the learner publishes those it goes on from anew."""
    later = [path for saved, path in saved_checkpoints(folder.checkpoints) if saved > step]
    later += sorted(folder.policies.glob("policy-*.safetensors"))
    for path in later:
        aside = path.parent / f"set-aside-{folder.resumed + 1:04d}"
        aside.mkdir(exist_ok=True)
        path.replace(aside / path.name)
    return len(later)


async def _forget_rows(settings: Settings, folder: RunFolder, cut: Cut, aside: SetAside) -> None:
    """The embedded warehouse is built anew from the log, by its service; a server forgets what lies behind the cut."""
    if settings.warehouse == EMBEDDED:
        folder.ask_for_a_new_warehouse()
    elif aside.folder is not None:
        from streams.warehouse.store import Warehouse

        async with Warehouse(warehouse_dsn(settings)) as warehouse:
            await warehouse.forget_behind(settings.prefix, cut.by_place())
