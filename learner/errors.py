"""Errors of the learner. Each message is one sentence that names the way out."""


class LearnerError(ValueError):
    """Something the user gave the learner, or left on disk for it, that it cannot use."""


class ModelFolderError(LearnerError):
    """A model folder that is missing or damaged."""


class CheckpointError(LearnerError):
    """A checkpoint or a weights file that is missing, damaged, or not what its digest says."""


class SupersededError(LearnerError):
    """Another learner owns the run now; this one must stop writing."""

    def __init__(self, generation: int) -> None:
        super().__init__(f"another learner took over the run from generation {generation}; this one stops")
