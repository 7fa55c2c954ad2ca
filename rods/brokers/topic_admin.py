"""Topics as a broker has them, and the changes that a plan makes to them."""

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.admin.new_partitions import NewPartitions
from aiokafka.errors import IncompatibleBrokerVersion, KafkaError, TopicAlreadyExistsError

from eventlog.connection import Broker, client_options
from eventlog.reader import read_all
from rods.brokers.topics_file import TopicSpec
from rods.brokers.topics_plan import FoundTopic, RunUnder, TopicAction, TopicChange
from rods.errors import UserError
from schemas.codec import decode
from schemas.epochs import EpochOpened
from schemas.errors import SchemaError
from schemas.topics import Topic

_OWN_SOURCE = 1
"""DescribeConfigs: a setting given to the topic itself."""


class TopicAdmin:
    """Asks and changes one cluster. Async context manager. Raises UserError where the broker refuses."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._client = AIOKafkaAdminClient(**client_options(broker))

    async def __aenter__(self) -> "TopicAdmin":
        try:
            await self._client.start()
        except KafkaError as error:
            await self._client.close()
            raise UserError(f"no Kafka broker answers at {self._broker}: {error}") from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._client.close()

    async def brokers(self) -> int:
        """How many brokers the cluster has now."""
        return max(1, len((await self._client.describe_cluster())["brokers"]))

    async def names(self) -> set[str]:
        """Every topic of the cluster."""
        return set(await self._client.list_topics())

    async def partitions(self, names: Iterable[str]) -> dict[str, int]:
        """The number of partitions of those topics that exist."""
        existing = sorted(set(names) & await self.names())
        described = await self._client.describe_topics(existing) if existing else []
        return {topic["topic"]: len(topic["partitions"]) for topic in described}

    async def found(self, names: Iterable[str]) -> dict[str, FoundTopic]:
        """Those of the topics that exist."""
        existing = sorted(set(names) & await self.names())
        if not existing:
            return {}
        configs = await self._configs(existing)
        found = {}
        for topic in await self._client.describe_topics(existing):
            name, partitions = topic["topic"], topic["partitions"]
            settings = configs.get(name)
            found[name] = FoundTopic(
                name=name,
                partitions=len(partitions),
                replication=min((len(partition["replicas"]) for partition in partitions), default=0),
                config={entry: value for entry, (value, _) in settings.items()} if settings else None,
                own={entry: value for entry, (value, own) in settings.items() if own} if settings else {},
            )
        return found

    async def create(self, specs: Sequence[TopicSpec]) -> None:
        """Makes topics; one that has come to exist meanwhile stays as it is."""
        if not specs:
            return
        new = [
            NewTopic(spec.name, spec.partitions, spec.replication, topic_configs=dict(spec.config)) for spec in specs
        ]
        response = await self._client.create_topics(new)
        for name, code, *detail in response.topic_errors:
            if code not in (0, TopicAlreadyExistsError.errno):
                raise _refused(f"make the topic {name}", code, detail)

    async def apply(self, changes: Sequence[TopicChange]) -> None:
        """Makes every change of a plan, topics first, then partitions, then settings."""
        try:
            await self._apply(changes)
        except IncompatibleBrokerVersion as error:
            raise UserError(f"this broker can neither add partitions nor alter a topic that exists: {error}") from error

    async def _apply(self, changes: Sequence[TopicChange]) -> None:
        await self.create([change.spec for change in changes if change.action is TopicAction.CREATE])
        grown = {c.spec.name: NewPartitions(c.spec.partitions) for c in changes if c.action is TopicAction.GROW}
        if grown:
            response = await self._client.create_partitions(grown)
            for name, code, *detail in response.topic_errors:
                if code:
                    raise _refused(f"add partitions to {name}", code, detail)
        for change in changes:
            if change.differences:
                await self._alter(change)

    async def delete(self, names: Sequence[str]) -> None:
        """Removes topics with all they hold."""
        await self._client.delete_topics(list(names))

    async def _alter(self, change: TopicChange) -> None:
        """AlterConfigs replaces all that the topic was given, so that what the file does not name is given again."""
        assert change.found is not None
        config = {**change.found.own, **{difference.name: difference.after for difference in change.differences}}
        wanted = {**config, **change.spec.config}
        resource = ConfigResource(ConfigResourceType.TOPIC, change.spec.name, wanted)
        for response in await self._client.alter_configs([resource]):
            for code, message, *_ in response.resources:
                if code:
                    raise _refused(f"alter {change.spec.name}", code, [message])

    async def _configs(self, names: Sequence[str]) -> dict[str, dict[str, tuple[str, bool]]]:
        """Topic to setting to its value and whether the topic was given it. Topics that the broker is silent about are
        left out."""
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
        configs: dict[str, dict[str, tuple[str, bool]]] = {}
        for response in await self._client.describe_configs(resources):
            for code, _, _, name, entries in response.resources:
                if not code and entries:
                    configs[name] = {entry[0]: (str(entry[1]), _is_own(entry)) for entry in entries}
        return configs


def _is_own(entry: Sequence[Any]) -> bool:
    """From version 1 on the fourth field is where the value comes from; before, whether it is the default."""
    return not entry[3] if isinstance(entry[3], bool) else entry[3] == _OWN_SOURCE


def _refused(what: str, code: int, detail: Sequence[Any]) -> UserError:
    words = " ".join(str(part) for part in detail if part)
    return UserError(f"the broker refuses to {what} (error {code}{': ' + words if words else ''})")


async def run_under(broker: Broker, prefix: str) -> RunUnder | None:
    """The run whose events the prefix's topics hold, if any."""
    run: RunUnder | None = None
    async for record in read_all(broker, Topic.EPOCHS.named(prefix), 0, start=None):
        try:
            event = decode(record.value or b"")
        except SchemaError:
            run = run or RunUnder("of an unknown version", None)
            continue
        if isinstance(event, EpochOpened):
            return RunUnder(event.envelope.run_id, event.partitions)
        run = run or RunUnder(event.envelope.run_id, None)
    return run
