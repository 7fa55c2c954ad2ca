"""Errors of the audit. Each message is one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

_LONGEST_REASON = 200


class AuditError(Exception):
    """The log cannot be audited as it is, or what was asked of it makes no sense."""


class InvalidRuleError(AuditError):
    """A rule to try out is invalid. cause: which one, and why; whoever talks to the user words it."""

    def __init__(self, cause: ValidationError) -> None:
        super().__init__(str(cause))
        self.cause = cause


@contextmanager
def of_a_run() -> Iterator[None]:
    """What values that no run writes lead to, wherever a log holds them, as an AuditError. `verify` and `replay` tell
    of such values one by one; whoever else reads a log takes it for one of a run."""
    try:
        yield
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"[:_LONGEST_REASON]
        raise AuditError(
            f"the log holds values that no run writes ({reason}); rods audit verify tells where they stand"
        ) from error
