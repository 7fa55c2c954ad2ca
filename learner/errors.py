"""Errors of the learner. Each message is one sentence that names the way out."""


class LearnerError(ValueError):
    """Something the user gave the learner, or left on disk for it, that it cannot use."""


class ModelFolderError(LearnerError):
    """A model folder that is missing or damaged."""


class CheckpointError(LearnerError):
    """A checkpoint or a weights file that is missing, damaged, or not what its digest says."""
