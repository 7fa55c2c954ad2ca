"""Errors of the producers' processes. Each message is one sentence."""


class ProducerError(RuntimeError):
    """A worker that cannot go on; its process ends with the message."""


class LogTruncatedError(ProducerError):
    """The broker no longer has the beginning of a partition that must be folded from there."""

    def __init__(self, topic: str, partition: int, offset: int) -> None:
        super().__init__(
            f"{topic}/{partition} begins at offset {offset}, so that it cannot be folded from its beginning"
        )


class StandstillError(ProducerError):
    """The log has more, and it does not arrive."""

    def __init__(self, topic: str, partition: int, seconds: float) -> None:
        super().__init__(f"no record of {topic}/{partition} came for {seconds:g} s though the log has more")


class TaskUnknownError(ProducerError):
    """No definition of a task lies before the pool offset that a request names."""

    def __init__(self, task: str, pool_offset: int) -> None:
        super().__init__(f"task {task!r} is not registered before pool offset {pool_offset}")


class PoolBehindError(ProducerError):
    """The pool's log has not come to the offset that a request names, however long it was waited for."""

    def __init__(self, pool_offset: int) -> None:
        super().__init__(f"the pool's log does not reach offset {pool_offset}")


class PolicyUnavailableError(ProducerError):
    """A policy version that is not published, or whose weights cannot be loaded."""
