"""Errors of the rollouts. Each message is one sentence that names the way out."""


class RolloutError(ValueError):
    """Something a rollout worker was given that it cannot use."""


class PolicyFolderError(RolloutError):
    """A policy's model folder, or published weights, that are missing, damaged or not what their digest says."""
