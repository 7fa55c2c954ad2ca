"""`rods topics` on a live broker: the plan is shown, then made, and never against a run."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eventlog.client import log_producer
from eventlog.writer import send
from rods.brokers.topics_file import TOPICS_FILE
from rods.cli.main import app
from rods.errors import UserError
from schemas.codec import encode
from schemas.envelope import stamp
from schemas.epochs import EpochOpened
from schemas.topics import Topic

RUNNER = CliRunner()


def rods(*arguments: str) -> list[dict[str, object]]:
    result = RUNNER.invoke(app, ["topics", *arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def actions(*arguments: str) -> set[object]:
    return {row["action"] for row in rods("apply", *arguments)}


def test_a_plan_is_shown_and_changes_nothing_without_yes(any_broker: str) -> None:
    where = ("--broker", any_broker, "--prefix", "plan.")
    assert actions(*where) == {"create"}
    assert rods("list", *where) == []
    assert actions(*where, "--yes") == {"create"}
    assert actions(*where) == {"unchanged"}
    rows = {row["topic"]: row for row in rods("list", *where)}
    assert list(rows) == [topic.named("plan.") for topic in Topic]
    assert rows["plan.rollouts"]["partitions"] == 4
    assert (rows["plan.pool"]["partitions"], rows["plan.pool"]["retention_ms"]) == (1, -1)
    assert rows["plan.trajectories"]["max_message_bytes"] == 8454144


async def opened(broker: str, prefix: str, partitions: int) -> None:
    event = EpochOpened(1, 1, "{}", partitions, "", {}, "", "", "")
    async with log_producer(broker) as producer:
        value = encode(stamp(event, run_id="r1", occurred_at=0, producer="learner"))
        await send(producer, Topic.EPOCHS.named(prefix), 0, "r1", value)


async def test_a_run_keeps_its_number_of_partitions(any_broker: str) -> None:
    import asyncio

    where = ("--broker", any_broker, "--prefix", "run.")
    await asyncio.to_thread(rods, "apply", *where, "--partitions", "2", "--yes")
    await opened(any_broker, "run.", 2)
    for asked, word in (("3", "holds the run r1"), ("1", "takes none away")):
        with pytest.raises(UserError, match=word):
            await asyncio.to_thread(rods, "apply", *where, "--partitions", asked, "--yes")
    assert {row["action"] for row in await asyncio.to_thread(rods, "apply", *where, "--partitions", "2")} == {
        "unchanged"
    }


@pytest.mark.kafka
def test_topics_without_a_run_grow_and_take_other_settings(kafka: str, tmp_path: Path) -> None:
    where = ("--broker", kafka, "--prefix", "grow.")
    rods("apply", *where, "--yes")
    assert actions(*where, "--partitions", "6", "--yes") == {"grow", "unchanged"}
    file = tmp_path / "topics.toml"
    file.write_text(TOPICS_FILE.read_text().replace('"604800000"', '"86400000"'))
    asked = (*where, "--partitions", "6", "--file", str(file))
    changed = {row["topic"]: row["differences"] for row in rods("apply", *asked, "--yes") if row["action"] == "alter"}
    assert changed == {"grow.trajectories": {"retention.ms": {"before": "604800000", "after": "86400000"}}}
    assert actions(*asked) == {"unchanged"}
    [row] = [row for row in rods("list", *where) if row["topic"] == "grow.trajectories"]
    assert (row["partitions"], row["retention_ms"], row["max_message_bytes"]) == (6, 86400000, 8454144)


def test_without_a_broker_one_sentence_asks_for_it() -> None:
    with pytest.raises(UserError, match="give --broker"):
        rods("list")
