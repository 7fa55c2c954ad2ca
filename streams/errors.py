"""What stops a stream. Each message is one sentence."""


class StreamError(Exception):
    """A stream cannot go on as it is."""


class OffsetGapError(StreamError):
    """Events between the expected offset and the delivered one were skipped, or the broker no longer has them."""

    def __init__(self, topic: str, partition: int, expected: int, found: int) -> None:
        super().__init__(
            f"{topic}/{partition} jumps from offset {expected} to {found}: restart the worker to read them again; "
            "if it persists, the broker no longer has them and the topic must be restored from the archive"
        )
        self.expected = expected
        self.found = found


class UnassembledSealError(StreamError):
    """Chunks that do not form one seal."""


class LogBehindError(StreamError):
    """The log ends before what the seals cover: it is an older copy."""

    def __init__(self, topic: str, partition: int, sealed: int, end: int) -> None:
        super().__init__(
            f"{topic}/{partition} ends at offset {end} and its seals cover it up to {sealed}: "
            "the topic must be restored from the archive"
        )
