"""Errors of the producers' processes. Each message is one sentence."""


class ProducerError(RuntimeError):
    """A worker that cannot go on; its process ends with the message."""


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
