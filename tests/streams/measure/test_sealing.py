import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from schemas.topics import Topic
from streams.measure import sealing as module
from streams.measure.agent import MeasureAgent
from streams.measure.sealing import Sealing
from streams.measure.state import MeasureState
from streams.service.session import MeasurePosition, Session
from tests.streams.live_stream import Live, delivery
from tests.streams.rollout_log import barrier, expected, result


class Measure(Live):
    """Seals are written beside the stream, as in the service."""

    def __init__(self, partitions: int = 1) -> None:
        positions = {number: MeasurePosition(MeasureState(number), sealed=0) for number in range(partitions)}
        super().__init__(Session(1, positions, None))
        self.running: list[asyncio.Task[None]] = []
        self.observed: list[tuple[int, int]] = []
        self.sealing = Sealing(self.outbox, "rods.", self._start, self.stream.acknowledge, self._sealed)
        self.agent = MeasureAgent(self.gate, self.outbox, self.sealing)

    async def take(self, offset: int, event: Any, partition: int = 0) -> None:
        await self.agent.take(delivery(Topic.ROLLOUTS, offset, event, partition=partition))

    async def written(self) -> None:
        self.producer.hold = False
        while self.running:
            self.producer.release()
            await asyncio.sleep(0)

    @property
    def seals(self) -> list[int]:
        return [seal.step for seal in self.producer.events(Topic.SEALS)]

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
        self.running.append(task)
        task.add_done_callback(self.running.remove)

    def _sealed(self, seals: Any, covered: int) -> None:
        self.observed.append((seals[0].step, covered))


async def some_turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_the_fold_goes_on_while_the_broker_has_not_acknowledged_a_seal() -> None:
    live = Measure()
    live.producer.hold = True
    for step in (1, 2, 3):
        await live.take(2 * step - 2, result(step=step))
        await live.take(2 * step - 1, barrier(expected(step=step), step=step))
    await some_turns()
    assert live.session.measure[0].state.step == 3 and live.seals == [] and live.stream.acked == []
    await live.written()
    assert live.seals == [1, 2, 3] and live.stream.acked == list(range(6))
    assert live.observed == [(1, 2), (2, 2), (3, 2)]


async def test_a_seal_acknowledges_nothing_that_was_folded_after_its_barrier() -> None:
    live = Measure()
    live.producer.hold = True
    await live.take(0, barrier())
    await live.take(1, result(step=2))
    await live.written()
    assert live.stream.acked == [0]
    assert [event.message.offset for event in live.session.measure[0].pending] == [1]


async def test_a_seal_leaves_only_behind_the_views_before_it_though_others_wait_for_the_same_sends() -> None:
    live = Measure()
    live.producer.hold = True
    await live.take(0, result())
    other = asyncio.create_task(live.outbox.settled())
    await some_turns()
    await live.take(1, barrier(expected()))
    await some_turns()
    assert live.seals == []
    await live.written()
    await other
    assert live.seals == [1] and live.stream.acked == [0, 1]


async def test_seals_of_several_partitions_share_their_waits() -> None:
    live = Measure(partitions=3)
    live.producer.hold = True
    await live.take(0, result())
    for partition in range(3):
        await live.take(int(not partition), barrier(partition=partition, partitions=3), partition)
    await some_turns()
    live.producer.release()
    await some_turns()
    assert live.seals == [1, 1, 1] and live.stream.acked == []
    await live.written()
    assert sorted(live.stream.acked) == [0, 0, 0, 1]


async def test_what_is_due_when_the_partition_is_lost_is_not_written() -> None:
    live = Measure()
    live.producer.hold = True
    await live.take(0, result())
    await live.take(1, barrier(expected()))
    await live.take(2, barrier(step=2))
    live.gate.close()
    await live.written()
    assert live.seals == [] and live.stream.acked == [] and not live.sealing.full


async def test_a_seal_that_was_written_before_the_partition_was_lost_acknowledges_nothing() -> None:
    live = Measure()
    live.producer.hold = True
    await live.take(0, barrier())
    await some_turns()
    assert live.seals == [1]
    live.app.consumer_generation_id = 2
    await live.written()
    assert live.stream.acked == []


async def test_too_many_seals_without_an_acknowledgement_make_the_stream_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_DUE", 2)
    live = Measure()
    live.producer.hold = True
    for step in (1, 2):
        await live.take(step - 1, barrier(step=step))
    waiting = asyncio.create_task(live.take(2, barrier(step=3)))
    await some_turns()
    assert not waiting.done() and live.session.measure[0].state.step == 2
    await live.written()
    await waiting
    await live.written()
    assert live.seals == [1, 2, 3] and live.stream.acked == [0, 1, 2]


async def test_a_seal_that_the_broker_refuses_fails_what_was_started() -> None:
    live = Measure()
    live.producer.failure = RuntimeError("no leader")
    await live.take(0, barrier())
    (task,) = live.running
    with pytest.raises(RuntimeError, match="no leader"):
        await task
    assert live.stream.acked == []
