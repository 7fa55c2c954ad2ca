import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from schemas.seals import PartitionSealed, SelectionClosed
from schemas.topics import Topic
from streams.select.agent import SelectAgent
from streams.select.fold import PlacedSeed, SelectState, evolve
from streams.service.notices import Notice
from streams.service.session import SelectPosition, Session
from tests.streams.live_stream import Live, delivery, until
from tests.streams.rollout_log import barrier, expected, result, seal_of

Seeds = tuple[PlacedSeed, ...]


class Select(Live):
    def __init__(
        self,
        state: SelectState | None = None,
        recovered: int = 0,
        seeds: Mapping[int, tuple[PlacedSeed, ...]] | None = None,
    ) -> None:
        self.position = SelectPosition(state or SelectState(), recovered, dict(seeds or {}))
        super().__init__(Session(1, {}, self.position))
        self.notices: list[Notice] = []
        self.agent = SelectAgent(self.gate, self.outbox, "rods.", notify=self.notices.append)

    async def take(self, offset: int, event: Any, *, generation: int = 1) -> None:
        await self.agent.take(self.stream, delivery(Topic.SEALS, offset, event, generation=generation))


def seal() -> PartitionSealed:
    return seal_of(result(passed=(0, 2, 1, 1)), barrier(expected()))


def proposed() -> SelectionClosed:
    closed = evolve(SelectState(), 0, seal()).proposed
    assert closed is not None
    return closed


async def test_a_whole_step_is_proposed_and_its_seeds_follow_when_it_is_read_back() -> None:
    live = Select()
    await live.take(0, seal())
    assert live.producer.events(Topic.SEALS) == [proposed()] and live.producer.events(Topic.SEEDS) == []
    await live.take(1, proposed())
    assert [seed.task for seed in live.producer.events(Topic.SEEDS)] == ["t"]
    assert live.stream.acked == [0, 1]


async def test_a_selection_is_acknowledged_after_its_seeds() -> None:
    live = Select()
    await live.take(0, seal())
    live.producer.hold = True
    task = asyncio.create_task(live.take(1, proposed()))
    await until(lambda: len(live.producer.events(Topic.SEEDS)) == 1)
    await asyncio.sleep(0.01)
    assert live.stream.acked == [0]
    live.producer.release()
    await task
    assert live.stream.acked == [0, 1]


async def test_a_selection_read_before_the_start_and_never_committed_has_its_seeds_written_again() -> None:
    first = evolve(SelectState(), 0, seal())
    second = evolve(first.state, 1, proposed())
    live = Select(second.state, recovered=2, seeds={1: second.seeds})
    await live.take(0, seal())
    await live.take(1, proposed())
    assert [seed.task for seed in live.producer.events(Topic.SEEDS)] == ["t"]
    assert live.producer.events(Topic.SEALS) == [] and live.stream.acked == [0, 1]


async def test_what_nobody_selected_yet_is_proposed_at_the_start() -> None:
    live = Select(evolve(SelectState(), 0, seal()).state, recovered=1)
    await live.agent.resume(live.position)
    assert live.producer.events(Topic.SEALS) == [proposed()]


async def test_a_start_with_nothing_open_proposes_nothing() -> None:
    live = Select()
    await live.agent.resume(live.position)
    assert live.producer.sent == []


async def test_poison_goes_to_the_dead_letters_before_and_after_the_start() -> None:
    live = Select(SelectState(next_offset=1), recovered=1)
    await live.take(0, b"old garbage")
    await live.take(1, b"new garbage")
    assert [letter.offset for letter in live.producer.events(Topic.DEAD_LETTERS)] == [0, 1]
    assert live.stream.acked == [0, 1] and live.position.state.next_offset == 2


async def test_a_record_without_a_value_goes_to_the_dead_letters() -> None:
    live = Select()
    empty = delivery(Topic.SEALS, 0, b"")
    empty.message.value = None
    await live.agent.take(live.stream, empty)
    assert [letter.offset for letter in live.producer.events(Topic.DEAD_LETTERS)] == [0]
    assert live.stream.acked == [0] and live.position.state.next_offset == 1


async def test_an_unknown_fingerprint_stops_the_stream() -> None:
    live = Select()
    await live.take(0, b"\xc3\x01" + b"12345678" + b"body")
    await live.take(1, seal())
    assert live.position.stopped and live.producer.sent == [] and live.stream.acked == []
    assert live.notices == [Notice.UNKNOWN_SCHEMA]


async def test_a_second_seal_that_says_something_else_is_told_and_an_equal_one_is_not() -> None:
    live = Select()
    for offset, event in enumerate([seal(), seal(), replace(seal(), digest="other")]):
        await live.take(offset, event)
    assert live.notices == [Notice.CONTRADICTED]


async def test_a_message_of_an_older_generation_is_dropped() -> None:
    live = Select()
    await live.take(0, seal(), generation=0)
    assert live.producer.sent == [] and live.stream.acked == []
