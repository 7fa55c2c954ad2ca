"""Topics for what is old: made, or set, so that no record is expired on arrival for its age."""

from dataclasses import replace

from aiokafka.errors import KafkaError

from eventlog.connection import Broker
from rods.brokers.embedded import create_topics
from rods.brokers.topic_admin import TopicAdmin
from rods.brokers.topics_file import TopicSpec, load_topics
from rods.brokers.topics_plan import FoundTopic, SettingChange, TopicAction, TopicChange
from rods.errors import UserError

RETENTION = "retention.ms"
FOREVER = "-1"


async def create_restored_topics(broker: Broker, prefix: str, partitions: int) -> None:
    """Makes the run's topics with `retention.ms=-1`, and sets it on those that exist. Raises UserError."""
    try:
        async with TopicAdmin(broker) as admin:
            specs = [_forever(spec.on(await admin.brokers())) for spec in load_topics(prefix, partitions)]
            existing = await admin.found([spec.name for spec in specs])
            await admin.create([spec for spec in specs if spec.name not in existing])
            await create_topics(broker, prefix, partitions)
            for spec in specs:
                if spec.name in existing:
                    await _keep(admin, spec, existing[spec.name])
    except KafkaError as error:
        raise UserError(f"the broker at {broker} refuses the topics of {prefix!r}: {error}") from error


async def _keep(admin: TopicAdmin, spec: TopicSpec, found: FoundTopic) -> None:
    """Sets another retention to for ever. A broker that describes no settings expires nothing."""
    kept = (found.config or {}).get(RETENTION, FOREVER)
    if kept == FOREVER:
        return
    change = SettingChange(RETENTION, kept, FOREVER)
    try:
        await admin.apply([TopicChange(spec, TopicAction.ALTER, (change,), found=found)])
    except (KafkaError, UserError) as error:
        raise UserError(
            f"the topic {spec.name} expires old records, and the broker does not change that; "
            "delete the topic, so that it is made anew"
        ) from error


def _forever(spec: TopicSpec) -> TopicSpec:
    return replace(spec, config={**spec.config, RETENTION: FOREVER})
