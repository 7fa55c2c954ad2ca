"""`infra/kafka/topics.toml`: which topics a run has and how a broker keeps them."""

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from rods.errors import UserError
from schemas.topics import Topic

TOPICS_FILE = Path(__file__).resolve().parents[2] / "infra" / "kafka" / "topics.toml"
_INSYNC = "min.insync.replicas"


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to create. config: the broker's settings by their Kafka names."""

    topic: Topic
    name: str
    partitions: int
    replication: int
    config: dict[str, str]

    def on(self, brokers: int) -> "TopicSpec":
        """The same topic on so many brokers: one of several replicas may always be missing."""
        replication = min(self.replication, brokers)
        insync = min(int(self.config.get(_INSYNC, "1")), max(1, replication - 1))
        return replace(self, replication=replication, config={**self.config, _INSYNC: str(insync)})


def load_topics(prefix: str, partitions: int, path: Path = TOPICS_FILE) -> tuple[TopicSpec, ...]:
    """Every topic of a run, in the order of the catalogue. Raises UserError where the file does not name them all."""
    try:
        document = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"the topics file {path} cannot be read: {error}") from error
    tables, defaults = document.get("topics", {}), document.get("defaults", {})
    if unknown := sorted(set(tables) ^ {topic.value for topic in Topic}):
        raise UserError(f"the topics file {path} must name the topics of the catalogue; it differs in {unknown}")
    return tuple(
        TopicSpec(
            topic=topic,
            name=topic.named(prefix),
            partitions=partitions if topic.by_task else 1,
            replication=int(tables[topic.value].get("replication", defaults.get("replication", 1))),
            config={**defaults.get("config", {}), **tables[topic.value].get("config", {})},
        )
        for topic in Topic
    )
