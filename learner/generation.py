"""One writer: a learner claims the next generation and fences the older ones on every partition it writes to.

    read the newest generation g -> LearnerStarted{g+1, nonce} to rods.epochs -> read back: the first nonce wins
    -> LearnerStarted to every partition of assignments and rollouts, and to pool -> read back on all -> act

On each partition the folds ignore learner events older than the newest generation seen there, so a learner that was
paused and wakes writes to nobody.
"""

from learner.errors import SupersededError
from learner.history import History
from learner.log import LearnerLog, Write
from schemas.epochs import LearnerStarted
from schemas.topics import Topic


async def claim_generation(log: LearnerLog, history: History, nonce: str) -> int:
    """The generation this learner may write as. Raises SupersededError where another one was first or is newer."""
    generation = history.generation + 1
    started = LearnerStarted(generation, nonce)
    offset = (await log.write([Write(Topic.EPOCHS, 0, log.run_id, started)]))[0]
    await log.wait_until(lambda: history.next_offset > offset)
    if history.claims.get(generation) != nonce or history.generation != generation:
        raise SupersededError(generation)
    await _fence(log, started)
    if history.generation != generation:
        raise SupersededError(generation)
    return generation


async def _fence(log: LearnerLog, started: LearnerStarted) -> None:
    places = [(topic, part) for topic in (Topic.ASSIGNMENTS, Topic.ROLLOUTS) for part in range(log.partitions)]
    places.append((Topic.POOL, 0))
    offsets = await log.write([Write(topic, part, log.run_id, started) for topic, part in places])
    names = [(topic.named(log.prefix), part) for topic, part in places]
    seen = await log.read_from(dict(zip(names, offsets, strict=True)))
    newer = [event for event in seen if isinstance(event, LearnerStarted) and event.generation > started.generation]
    if newer:
        raise SupersededError(started.generation)
