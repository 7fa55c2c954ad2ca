"""Failures that users of the frameworks have reported, as inputs. Each ends with nothing lost or counted twice.

A scenario gets a bench of its own and mostly waits, so that several run at a time.
"""

import asyncio
from functools import partial

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.records_to_delete import RecordsToDelete
from aiokafka.errors import CommitFailedError

from eventlog.reader import end_offsets
from schemas.topics import Topic, partition_of
from tests.integration.faults.bench import Bench, Worker, bench
from tests.integration.faults.worker import COMMITTED


async def a_commit_past_an_event_in_flight(four: Bench) -> None:
    """faust-streaming#606. Here it even passes a barrier, so that no later event would bring its seal about."""
    first = await four.start()
    await four.step(1)
    await four.results(2)
    await first.end()
    await four.barriers(2)
    await four.commit()
    await four.start()
    await four.closed(2)
    await four.step(3)
    await four.assert_exact(3)


async def a_commit_past_the_seeds_in_flight(four: Bench) -> None:
    """The same of a selection whose seeds were never written."""
    first = await four.start()
    await four.step(1)
    await first.end()
    await four.commit()
    await four.start()
    await four.step(2)
    await four.assert_exact(2)


async def recovery_with_an_emptied_topic(four: Bench) -> None:
    """faust-streaming#597, #176: the seals are gone, their topic and the group's offsets are not.

    Sealed anew, they begin at another offset, which the next worker takes for what it is.
    """
    first = await four.start()
    await four.step(1)
    await four.step(2, last=True)
    await four.results(3)
    await first.end()
    await _empty(four, Topic.SEALS, anew=not four.empties)
    second = await four.start()
    await four.barriers(3)
    await four.closed(3)
    await second.end()
    await four.start()
    await four.step(4)
    await four.assert_exact(4)


async def _empty(bench: Bench, topic: Topic, *, anew: bool) -> None:
    """Deletes every record; the embedded broker can only be asked to make the topic anew."""
    name = topic.named(bench.prefix)
    ends = await end_offsets(bench.address, [(name, 0)])
    admin = AIOKafkaAdminClient(bootstrap_servers=bench.address)
    await admin.start()
    try:
        if anew:
            await admin.delete_topics([name])
            await admin.create_topics([NewTopic(name, 1, 1)])
        else:
            await admin.delete_records({TopicPartition(name, 0): RecordsToDelete(before_offset=ends[name, 0])})
    finally:
        await admin.close()


async def offsets_newer_than_the_broker(four: Bench) -> None:
    """faust-streaming#158: what a worker remembers is ahead of a log that was put back from an older copy.

    Kafka sends such a consumer to the beginning; the embedded broker gives it nothing, which the watchdog sees.
    """
    first = await four.start()
    await four.step(1)
    await first.end()
    await four.commit(ahead=1000)
    await four.start(stuck_seconds=10.0)
    await four.step(2)
    await four.assert_exact(2)


async def a_tiny_stream_buffer(four: Bench) -> None:
    """faust-streaming#74: one event fits, a thousand wait when the worker recovers."""
    first = await four.start(buffer=1)
    await four.step(1)
    for _ in range(10):
        await four.results(2)
    await first.kill()
    for _ in range(10):
        await four.results(2)
    await four.start(buffer=1)
    await four.barriers(2)
    await four.closed(2)
    await four.assert_exact(2)


async def a_partition_that_leaves_and_comes_back(four: Bench) -> None:
    """faust-streaming#318: what the other worker took of it meanwhile is not what this one remembers."""
    first = await four.start()
    await four.step(1)
    await four.results(2, four.tasks[:12])
    await four.measured(24 + 12)
    guest = await four.start()
    await four.shared(first, guest)
    assert guest.held is not None
    away = [task for task in four.tasks[12:20] if partition_of(task, 4) in guest.held.partitions]
    assert away
    await four.results(2, four.tasks[12:20])
    await four.measured(24 + 20)
    await guest.end()
    await four.shared(first)
    await four.results(2, four.tasks[20:])
    await four.barriers(2)
    await four.closed(2)
    await four.step(3)
    await four.assert_exact(3)


async def twelve_partitions_with_three_workers(twelve: Bench) -> None:
    """faust-streaming#471."""
    workers = [await twelve.start() for _ in range(3)]
    await twelve.shared(*workers)
    await twelve.step(1)
    await twelve.results(2)
    await workers[1].kill()
    await twelve.barriers(2)
    await twelve.closed(2)
    await twelve.shared(workers[0], workers[2])
    await twelve.assert_exact(2)


async def a_blocked_event_loop(four: Bench) -> None:
    """faust-streaming#532: blocked for a minute, past a bound of ten seconds."""
    worker = await four.start(fault="loop_blocks", blocked_seconds=10.0)
    await four.step(1)
    worker.sign.touch()
    await four.results(2)
    await four.barriers(2)
    await four.closed(2)
    assert worker.fired and worker.deaths >= 1
    assert "the event loop was blocked for more than 10 s" in worker.log_file.read_text()
    await four.assert_exact(2)


async def a_process_that_stands_still_beyond_its_session(four: Bench) -> None:
    """The same from outside: it wakes to a group that has gone on without it, and is not ended for it."""
    first, second = await four.start(blocked_seconds=15.0), await four.start()
    await four.shared(first, second)
    await four.step(1)
    await four.results(2, four.tasks[:12])
    first.pause()
    await asyncio.gather(_step_two(four), asyncio.sleep(20.0))
    first.wake()
    await four.shared(first, second)
    await four.step(3)
    assert first.deaths == 0
    await four.assert_exact(3)


async def _step_two(four: Bench) -> None:
    await four.results(2, four.tasks[12:])
    await four.barriers(2)
    await four.closed(2)


async def a_commit_that_fails_once(four: Bench) -> None:
    """faust-streaming#611."""
    await _failing_commit(four, "commit_fails_once")


async def a_crash_whose_ending_hangs(four: Bench) -> None:
    """A service that stops by degrees may not come to its end, and no watchdog is left to see it."""
    await _failing_commit(four, "ending_hangs")
    assert four.workers[0].deaths


async def a_commit_that_is_refused_once(four: Bench) -> None:
    """The same where the broker answers that the group has moved on."""
    await _failing_commit(four, "commit_is_refused_once")


async def _failing_commit(four: Bench, fault: str) -> None:
    worker = await four.start(fault=fault)
    worker.sign.touch()
    await four.step(1)
    await worker.until(lambda failing: failing.fired)
    await four.step(2)
    await four.step(3)
    await four.assert_exact(3)


async def a_consumer_that_sticks(four: Bench) -> None:
    """aiokafka#1154: it says that there is nothing, without an error, while the log grows."""
    worker = await four.start(fault="consumer_sticks", stuck_seconds=10.0)
    await four.step(1)
    worker.sign.touch()
    await four.results(2)
    await four.barriers(2)
    await worker.died()
    assert worker.fired
    worker.sign.unlink()
    await four.closed(2)
    assert "did not move for 10 s though the log has more" in worker.log_file.read_text()
    await four.assert_exact(2)


async def assignments_that_change_between_fetch_and_commit(four: Bench) -> None:
    """aiokafka#933: a member joins, leaves, joins again and dies, each time while a commit is on its way."""
    first = await four.start(fault="commits_outlast_a_generation")
    first.sign.touch()
    members = [first]
    for step in (1, 2, 3, 4):
        await four.shared(*members)
        await four.step(step)
        await first.until(lambda worker: worker.committing)
        before = len(first.fired)
        if step in (1, 3):
            members.append(await four.start())
        else:
            guest = members.pop()
            await (guest.end() if step == 2 else guest.kill())
        await first.until(partial(_committed, beyond=before))
    first.sign.unlink()
    await four.assert_exact(4)


def _committed(worker: Worker, beyond: int) -> bool:
    """Whether one more commit met another generation. One that was refused as nobody's ends the worker, by and by."""
    ended = sum(outcome not in (COMMITTED, CommitFailedError.__name__) for outcome in worker.fired)
    return len(worker.fired) > beyond and worker.deaths >= ended


async def an_event_that_the_framework_skips(four: Bench) -> None:
    """An offset above the expected one: the event between is read from the log."""
    worker = await four.start(fault="event_is_skipped")
    await four.step(1)
    worker.sign.touch()
    await four.step(2)
    await four.step(3)
    assert worker.fired and "are read again from offset" in worker.log_file.read_text()
    await four.assert_exact(3)


async def seals_that_are_ahead_of_the_log_stop_the_worker_and_it_says_so(four: Bench) -> None:
    """What is written next would be taken as known."""
    first = await four.start()
    await four.step(1)
    await first.end()
    async with bench(four.address, f"older-{four.prefix}", 4, four.folder) as older:
        for record in (await four.log())[Topic.SEALS, 0]:
            await older.producer.send_and_wait(Topic.SEALS.named(older.prefix), record.value, partition=0)
        worker = await older.start()
        await worker.died()
        text = worker.log_file.read_text()
    assert "must be restored from the archive" in text


REPORTED = (
    a_commit_past_an_event_in_flight,
    a_commit_past_the_seeds_in_flight,
    recovery_with_an_emptied_topic,
    offsets_newer_than_the_broker,
    a_tiny_stream_buffer,
    a_partition_that_leaves_and_comes_back,
    twelve_partitions_with_three_workers,
    a_blocked_event_loop,
    a_process_that_stands_still_beyond_its_session,
    a_commit_that_fails_once,
    a_crash_whose_ending_hangs,
    a_commit_that_is_refused_once,
    a_consumer_that_sticks,
    assignments_that_change_between_fetch_and_commit,
    an_event_that_the_framework_skips,
    seals_that_are_ahead_of_the_log_stop_the_worker_and_it_says_so,
)
