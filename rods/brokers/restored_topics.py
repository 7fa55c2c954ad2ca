"""Topics for what is old: made, or set, so that no record is expired on arrival for its age."""

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, TopicAlreadyExistsError

from eventlog.connection import Broker, client_options
from rods.brokers.embedded import create_topics
from rods.brokers.topics_file import TopicSpec, load_topics
from rods.errors import UserError

RETENTION = "retention.ms"
FOREVER = "-1"


async def create_restored_topics(broker: Broker, prefix: str, partitions: int) -> None:
    """Makes the run's topics with `retention.ms=-1`, and sets it on those that exist. Raises UserError."""
    admin = AIOKafkaAdminClient(**client_options(broker))
    try:
        await admin.start()
        brokers = max(1, len((await admin.describe_cluster())["brokers"]))
        specs = [spec.on(brokers) for spec in load_topics(prefix, partitions)]
        existing = set(await admin.list_topics())
        await _create(admin, [spec for spec in specs if spec.name not in existing])
        await create_topics(broker, prefix, partitions)
        await _keep(admin, [spec for spec in specs if spec.name in existing])
    except KafkaError as error:
        raise UserError(f"the broker at {broker} refuses the topics of {prefix!r}: {error}") from error
    finally:
        await admin.close()


async def _create(admin: AIOKafkaAdminClient, specs: list[TopicSpec]) -> None:
    if not specs:
        return
    response = await admin.create_topics(
        [NewTopic(spec.name, spec.partitions, spec.replication, topic_configs=_forever(spec)) for spec in specs]
    )
    for name, code, *detail in response.topic_errors:
        if code not in (0, TopicAlreadyExistsError.errno):
            raise UserError(f"the broker refuses to make the topic {name} (error {code}: {' '.join(map(str, detail))})")


async def _keep(admin: AIOKafkaAdminClient, specs: list[TopicSpec]) -> None:
    """Sets the retention of topics that have another one. A broker that describes no settings expires nothing."""
    for spec in specs:
        resource = ConfigResource(ConfigResourceType.TOPIC, spec.name)
        described = [
            entry
            for answer in await admin.describe_configs([resource])
            for found in answer.resources
            for entry in found[4]
        ]
        if any(entry[0] == RETENTION and entry[1] != FOREVER for entry in described):
            change = ConfigResource(ConfigResourceType.TOPIC, spec.name, configs=_forever(spec))
            try:
                await admin.alter_configs([change])
            except KafkaError as error:
                raise UserError(
                    f"the topic {spec.name} expires old records, and the broker does not change that; "
                    "delete the topic, so that it is made anew"
                ) from error


def _forever(spec: TopicSpec) -> dict[str, str]:
    return {**spec.config, RETENTION: FOREVER}
