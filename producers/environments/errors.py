"""Errors of the environments. Each message is one sentence."""


class EnvironmentFault(RuntimeError):  # noqa: N818 - a fault of the environment, not of the model's text
    """The environment itself cannot go on: the attempt's slot is failed, never scored as zero."""


class CallError(ValueError):
    """Model text that is no call this project runs: a failed call, which is data for the model."""


class TaskSourceError(ValueError):
    """A source, split, task or task file that cannot be read as one: a user's error."""


class TableError(ValueError):
    """A table of the package that cannot be read as one: a fault of the package, never of a user."""
