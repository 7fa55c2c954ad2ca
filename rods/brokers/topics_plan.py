"""What has to change on a broker for a run's topics to be as the design asks. Pure: facts in, a plan out.

Partitions never become fewer, and never change under a run, whose keys are where N put them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from rods.brokers.topics_file import TopicSpec
from rods.errors import UserError


class TopicAction(StrEnum):
    CREATE = "create"
    GROW = "grow"
    ALTER = "alter"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """A topic as it is. config: every setting by its Kafka name; None where the broker does not tell.

    own: those settings that were given to this very topic.
    """

    name: str
    partitions: int
    replication: int
    config: Mapping[str, str] | None = None
    own: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunUnder:
    """The run that a prefix holds. partitions: N as it recorded them; None where it has not opened an epoch yet."""

    run_id: str
    partitions: int | None


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting to alter. before: None where it is not known."""

    name: str
    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class TopicChange:
    """What happens to one topic. notes: what differs and stays so, or could not be found out."""

    spec: TopicSpec
    action: TopicAction
    differences: tuple[SettingChange, ...] = ()
    notes: tuple[str, ...] = ()
    found: FoundTopic | None = None

    @property
    def changes_something(self) -> bool:
        return self.action is not TopicAction.UNCHANGED


def plan(specs: Sequence[TopicSpec], found: Mapping[str, FoundTopic], run: RunUnder | None) -> tuple[TopicChange, ...]:
    """A change for each topic, in order. Raises UserError where a topic would shrink, or change under a run."""
    for spec in specs:
        _refuse(spec, found.get(spec.name), run)
    return tuple(_change(spec, found.get(spec.name)) for spec in specs)


def _refuse(spec: TopicSpec, found: FoundTopic | None, run: RunUnder | None) -> None:
    if found is not None and found.partitions > spec.partitions:
        raise UserError(
            f"the topic {spec.name} has {found.partitions} partitions and Kafka takes none away; "
            f"ask for --partitions {found.partitions}, or use another --prefix"
        )
    if run is None or not spec.topic.by_task:
        return
    began_with = run.partitions or (found.partitions if found else None)
    if began_with is not None and began_with != spec.partitions:
        raise UserError(
            f"the prefix holds the run {run.run_id}, which keeps the {began_with} partitions that it began with; "
            f"ask for --partitions {began_with}, or use another --prefix"
        )


def _change(spec: TopicSpec, found: FoundTopic | None) -> TopicChange:
    if found is None:
        return TopicChange(spec, TopicAction.CREATE)
    differences, notes = _differences(spec, found), _notes(spec, found)
    if found.partitions < spec.partitions:
        return TopicChange(spec, TopicAction.GROW, differences, notes, found)
    return TopicChange(spec, TopicAction.ALTER if differences else TopicAction.UNCHANGED, differences, notes, found)


def _differences(spec: TopicSpec, found: FoundTopic) -> tuple[SettingChange, ...]:
    if found.config is None:
        return ()
    pairs = ((name, found.config.get(name), wanted) for name, wanted in sorted(spec.config.items()))
    return tuple(SettingChange(*pair) for pair in pairs if pair[1] != pair[2])


def _notes(spec: TopicSpec, found: FoundTopic) -> tuple[str, ...]:
    notes = []
    if found.config is None:
        notes.append("the broker does not tell its settings")
    if found.replication != spec.replication:
        notes.append(
            f"replication is {found.replication} where {spec.replication} is asked for; Kafka's own tool moves it"
        )
    return tuple(notes)
