"""Errors of the event catalogue. Each message is one sentence."""


class SchemaError(ValueError):
    """Bytes or values that the event catalogue does not accept."""


class UndecodableError(SchemaError):
    """Framing or bytes that are no event: refused to the dead letters."""


class UnknownFingerprintError(SchemaError):
    """A well-framed event of a schema this reader does not know: the partition stops until readers are upgraded."""

    def __init__(self, fingerprint: bytes) -> None:
        super().__init__(f"unknown schema fingerprint {fingerprint.hex()}; upgrade readers before writers")
        self.fingerprint = fingerprint
