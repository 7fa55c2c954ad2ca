"""The two schedules that the trials of the framework lost events with."""

from tests.integration.faults.bench import Bench
from tests.integration.faults.worker import TAKEN_OF_A_BATCH


async def pause_take_over_wake_kill_both_and_start_a_third(four: Bench) -> None:
    """Worker 1 is paused in mid-batch, worker 2 takes over, worker 1 wakes, both are killed, worker 3 starts."""
    first = await four.start(fault="stops_in_mid_batch")
    await four.step(1)
    first.sign.touch()
    await four.results(2, four.tasks[:12])
    await first.until(lambda worker: worker.stopped)
    assert first.fired == [str(TAKEN_OF_A_BATCH)] and 0 < TAKEN_OF_A_BATCH < 12
    await four.results(2, four.tasks[12:])
    second = await four.start()
    await four.measured(48)
    first.wake()
    await four.barriers(2, partitions=(0, 1))
    await first.kill()
    await second.kill()
    await four.barriers(2, partitions=(2, 3))
    await four.results(3, four.tasks[:12])
    await four.start()
    await four.closed(2)
    await four.results(3, four.tasks[12:])
    await four.barriers(3)
    await four.closed(3)
    await four.assert_exact(3)


async def flush_every_hundred_send_a_hundred_and_fifty_kill_send_a_hundred_and_fifty(four: Bench) -> None:
    """A flush is a seal: the fifty behind it are in nobody's hands but the log's."""
    four.tasks = tuple(f"task-{number}" for number in range(100))
    first = await four.start()
    await four.results(1)
    await four.barriers(1)
    await four.results(2, four.tasks[:50])
    await four.closed(1)
    await four.measured(150)
    await first.kill()
    await four.results(2, four.tasks[50:])
    await four.barriers(2)
    await four.results(3)
    await four.start()
    await four.barriers(3)
    await four.closed(3)
    await four.assert_exact(3)


NAMED = (
    pause_take_over_wake_kill_both_and_start_a_third,
    flush_every_hundred_send_a_hundred_and_fifty_kill_send_a_hundred_and_fifty,
)
