"""BFCL multi-turn: the 800 tasks and the simulators of the `bfcl-eval` package, run without its evaluator."""

from producers.environments.bfcl.source import BfclSource

__all__ = ["BfclSource"]
