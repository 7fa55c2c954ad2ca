"""What ends a reader or a writer of the log. Each message is one sentence."""


class LogError(Exception):
    """The log cannot be read on from where the reader stands."""


class StandstillError(LogError):
    """The log has more, and it does not arrive."""

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(f"{what} did not move for {seconds:g} s though the log has more")


class BlockedLoopError(LogError):
    """Something held the event loop."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the event loop was blocked for more than {seconds:g} s")
