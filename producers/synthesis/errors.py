"""Why a stage gave up. The message is one sentence and becomes the reason of a rejection."""

from producers.environments.errors import CallError, EnvironmentFault, TaskSourceError

FAULTS = (EnvironmentFault, TaskSourceError, CallError)
"""What a task source or an environment raises for a definition that it cannot run."""


class StageError(Exception):
    """A stage that cannot go on with this attempt. `functions` are those to blame, for the next plan's blocklist."""

    def __init__(self, reason: str, functions: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.functions = functions
