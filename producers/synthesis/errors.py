"""Why a stage gave up. The message is one sentence and becomes the reason of a rejection."""


class StageError(Exception):
    """A stage that cannot go on with this attempt. `functions` are those to blame, for the next plan's blocklist."""

    def __init__(self, reason: str, functions: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.functions = functions
