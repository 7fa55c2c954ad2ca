"""What `rods doctor` finds out about a broker: each probe does what the system does, on a scratch topic of its own.

Nothing of a run is touched; the scratch topic is removed at the end.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.conn import create_conn
from aiokafka.errors import KafkaError
from aiokafka.protocol.admin import ApiVersionRequest

from eventlog.client import log_producer
from eventlog.connection import Connection, client_options, security_options
from eventlog.reader import end_offsets, read_all
from eventlog.writer import send
from rods.brokers.connection import parse_address
from rods.brokers.topic_admin import TopicAdmin
from rods.brokers.topics_file import TopicSpec, load_topics
from rods.brokers.topics_plan import FoundTopic
from rods.diagnosis import Diagnosis, broken, degraded, fine
from rods.errors import UserError
from schemas.codec import MAX_EVENT_BYTES
from schemas.topics import Topic

JOIN_SECONDS = 1.5
SESSION_SECONDS = 6.0
BROKERS = 3
_PROBE_SECONDS = 30.0
_NEEDED_APIS = {0: "Produce", 1: "Fetch", 2: "ListOffsets", 8: "OffsetCommit", 11: "JoinGroup", 19: "CreateTopics"}
_FOR_OPERATORS = {33: "AlterConfigs", 37: "CreatePartitions"}
_INIT_PRODUCER_ID = 22


@dataclass(frozen=True, slots=True)
class _Scratch:
    """The topic that probes write to, made as `rods.trajectories` is; `found` is what the broker says of it."""

    connection: Connection
    prefix: str
    spec: TopicSpec
    found: FoundTopic
    brokers: int

    @property
    def name(self) -> str:
        return self.spec.name


async def examine_broker(connection: Connection, prefix: str, partitions: int) -> list[Diagnosis]:
    """A finding a probe, in a fixed order. A probe that fails is a finding, not an error."""
    findings = [await _guarded("versions", _versions(connection))]
    try:
        async with _scratch(connection, prefix) as scratch:
            findings += [await _guarded(name, probe(scratch)) for name, probe in _PROBES.items()]
    except (KafkaError, UserError) as error:
        return [*findings, broken("topics", in_words(error))]
    return [*findings, await _guarded("retention", _retention(connection, prefix, partitions))]


async def _guarded(name: str, probe: Awaitable[Diagnosis]) -> Diagnosis:
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            return await probe
    except TimeoutError:
        return broken(name, f"no answer within {_PROBE_SECONDS:.0f} s")
    except (KafkaError, UserError, OSError, AssertionError) as error:
        return broken(name, in_words(error))


def in_words(error: Exception) -> str:
    """Why something failed, for a person: what Kafka's numbered errors stand for, and anything else as it says."""
    words = getattr(error, "description", None) if isinstance(error, KafkaError) else None
    if words:
        return f"{words[0].lower()}{words[1:].rstrip('.')}"
    return str(error) or ("no answer" if isinstance(error, TimeoutError) else type(error).__name__)


@asynccontextmanager
async def _scratch(connection: Connection, prefix: str) -> AsyncIterator[_Scratch]:
    name = f"{prefix}doctor-{secrets.token_hex(4)}"
    async with TopicAdmin(connection) as admin:
        brokers = await admin.brokers()
        [like] = [spec for spec in load_topics(prefix, 1) if spec.topic is Topic.TRAJECTORIES]
        spec = TopicSpec(like.topic, name, 1, like.replication, like.config).on(brokers)
        await admin.create([spec])
        try:
            found = await _once_known(admin, name)
            yield _Scratch(connection, prefix, spec, found, brokers)
        finally:
            await admin.delete([name])


async def _once_known(admin: TopicAdmin, name: str) -> FoundTopic:
    """A broker may take a moment to know a new topic."""
    found = await admin.found([name])
    while name not in found:
        await asyncio.sleep(0.1)
        found = await admin.found([name])
    return found[name]


async def _versions(connection: Connection) -> Diagnosis:
    host, port = parse_address(connection.addresses[0])
    reached = await create_conn(host, port, request_timeout_ms=5000, **security_options(connection))
    try:
        answer = await reached.send(ApiVersionRequest())
    finally:
        reached.close()
    spoken = {key: last for key, _, last in answer.api_versions}
    missing = [name for key, name in _NEEDED_APIS.items() if key not in spoken]
    if missing:
        return broken("versions", f"the broker does not know {', '.join(missing)}")
    detail = f"{len(spoken)} requests of the Kafka protocol, JoinGroup up to version {spoken[11]}"
    if lacking := [name for key, name in _FOR_OPERATORS.items() if key not in spoken]:
        return degraded("versions", f"{detail}; no {' and no '.join(lacking)}, so topics stay as made")
    return fine("versions", detail)


async def _replication(scratch: _Scratch) -> Diagnosis:
    if scratch.brokers >= BROKERS:
        return fine("replication", f"{scratch.brokers} brokers, 3 replicas a topic")
    there = "one broker" if scratch.brokers == 1 else f"{scratch.brokers} brokers"
    return degraded("replication", f"{there}: the design asks for 3, so that any one may be lost")


async def _transactions(scratch: _Scratch) -> Diagnosis:
    try:
        async with asyncio.timeout(8):
            await _abort_one(scratch)
    except (KafkaError, TimeoutError) as error:
        return degraded("transactions", f"none ({in_words(error)}); the loop needs none")
    return fine("transactions", "InitProducerId is answered, and a transaction aborts")


async def _read_committed(scratch: _Scratch) -> Diagnosis:
    """After `_transactions`: its aborted record is there for one reader and not for the other."""
    seen = {level: await _values(scratch, level) for level in ("read_uncommitted", "read_committed")}
    if b"aborted" not in seen["read_uncommitted"]:
        return degraded("read_committed", "cannot be shown without transactions; the loop needs none")
    if b"aborted" in seen["read_committed"]:
        return degraded("read_committed", "shows aborted records; the loop writes none")
    return fine("read_committed", "hides aborted records")


async def _abort_one(scratch: _Scratch) -> None:
    producer = AIOKafkaProducer(**client_options(scratch.connection), transactional_id=scratch.name)
    try:
        await producer.start()
        await producer.begin_transaction()
        await producer.send_and_wait(scratch.name, b"aborted", partition=0)
        await producer.abort_transaction()
    finally:
        await producer.stop()


async def _values(scratch: _Scratch, level: str) -> list[bytes]:
    """What a reader of this isolation level sees, up to a record written just now."""
    async with log_producer(scratch.connection) as producer:
        last = await send(producer, scratch.name, 0, "k", b"last")
    options = {**client_options(scratch.connection), "isolation_level": level, "auto_offset_reset": "earliest"}
    values: dict[int, bytes] = {}
    at = TopicPartition(scratch.name, 0)
    async with AIOKafkaConsumer(**options, group_id=None, enable_auto_commit=False) as consumer:
        consumer.assign([at])
        while last not in values:
            records = (await consumer.getmany(at, timeout_ms=500)).get(at, ())
            values |= {record.offset: record.value for record in records}
    return list(values.values())


class _Joined(ConsumerRebalanceListener):  # type: ignore[misc]
    """Sets an event once partitions are assigned."""

    def __init__(self, joined: asyncio.Event) -> None:
        self._joined = joined

    async def on_partitions_revoked(self, revoked: object) -> None:
        """Nothing to do."""

    async def on_partitions_assigned(self, assigned: object) -> None:  # noqa: ARG002 - the listener's signature
        self._joined.set()


async def _join_time(scratch: _Scratch) -> Diagnosis:
    loop, joined = asyncio.get_running_loop(), asyncio.Event()
    consumer = AIOKafkaConsumer(
        **client_options(scratch.connection),
        group_id=scratch.name,
        enable_auto_commit=False,
        session_timeout_ms=int(SESSION_SECONDS * 1000),
    )
    consumer.subscribe([scratch.name], listener=_Joined(joined))
    began = loop.time()
    await consumer.start()
    try:
        await joined.wait()
        taken = loop.time() - began
    finally:
        await consumer.stop()
    detail = f"a worker joins its group after {taken:.1f} s"
    if taken <= JOIN_SECONDS:
        return fine("join time", detail)
    return degraded("join time", f"{detail}, and so does each rebalance, with a session timeout of 6 s")


async def _config_access(scratch: _Scratch) -> Diagnosis:
    config = scratch.found.config
    if config is None:
        detail = "the broker does not tell a topic's settings: retention and sizes cannot be verified"
        return degraded("config access", detail)
    wrong = sorted(name for name, value in scratch.spec.config.items() if config.get(name) != value)
    if wrong:
        return degraded("config access", f"a new topic has other settings: {', '.join(wrong)}")
    return fine("config access", "a new topic has the settings it was given")


async def _message_size(scratch: _Scratch) -> Diagnosis:
    value = bytes(MAX_EVENT_BYTES)
    async with log_producer(scratch.connection) as producer:
        offset = await send(producer, scratch.name, 0, "k", value)
    async for record in read_all(scratch.connection, scratch.name, 0, start=offset):
        if record.offset == offset and record.value == value:
            return fine("message size", "an event of 8 MiB is written and read back")
    return broken("message size", "an event of 8 MiB was acknowledged and does not come back")


async def _end_offsets(scratch: _Scratch) -> Diagnosis:
    """Three records in one batch."""
    async with log_producer(scratch.connection) as producer:
        batch = producer.create_batch()
        for _ in range(3):
            batch.append(key=None, value=b"v", timestamp=None)
        last = (await (await producer.send_batch(batch, scratch.name, partition=0))).offset + 3
    at = TopicPartition(scratch.name, 0)
    options = client_options(scratch.connection)
    async with AIOKafkaConsumer(**options, group_id=None, enable_auto_commit=False) as consumer:
        reply = (await consumer.end_offsets([at]))[at]
    read = (await end_offsets(scratch.connection, [(scratch.name, 0)]))[scratch.name, 0]
    if read != last:
        return broken("end offsets", f"the log ends at {last}, and a reader finds {read}")
    if reply != last:
        detail = f"ListOffsets says {reply} where the log ends at {last}; readers here take the high watermark instead"
        return degraded("end offsets", detail)
    return fine("end offsets", "ListOffsets tells the end of the log")


async def _retention(connection: Connection, prefix: str, partitions: int) -> Diagnosis:
    """The topics of the prefix against the design."""
    specs = {spec.name: spec for spec in load_topics(prefix, partitions)}
    async with TopicAdmin(connection) as admin:
        brokers, found = await admin.brokers(), await admin.found(specs)
    if not found:
        return fine("retention", f"no topics under {prefix} yet, to be made as designed")
    wrong = []
    for name, topic in found.items():
        wanted = specs[name].on(brokers).config
        config = wanted if topic.config is None else topic.config
        wrong += [
            f"{name} {key}={config.get(key)}, not {wanted[key]}" for key in wanted if config.get(key) != wanted[key]
        ]
    if any(topic.config is None for topic in found.values()):
        return degraded("retention", "the broker does not tell how long its topics keep what they hold")
    if wrong:
        return degraded("retention", f"not as designed: {'; '.join(wrong)}; see `rods topics apply`")
    return fine("retention", f"{len(found)} topics under {prefix} keep what the design asks for")


_PROBES: dict[str, Callable[[_Scratch], Awaitable[Diagnosis]]] = {
    "replication": _replication,
    "config access": _config_access,
    "transactions": _transactions,
    "read_committed": _read_committed,
    "join time": _join_time,
    "message size": _message_size,
    "end offsets": _end_offsets,
}
