"""Errors of the audit. Each message is one sentence."""


class AuditError(Exception):
    """The log cannot be audited as it is, or what was asked of it makes no sense."""
