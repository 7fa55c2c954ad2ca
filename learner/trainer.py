"""What a learner does with a step's batch: train a model, or nothing where the policy has no weights."""

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from learner.checkpoint import load_checkpoint, publish_weights, save_checkpoint
from learner.engine import StepMetrics, TorchEngine
from learner.samples import StepBatch


@dataclass(frozen=True, slots=True)
class Published:
    """Where samplers find a policy version. Both empty where it has no weights."""

    location: str
    sha256: str


class Trainer(Protocol):
    """by_step: every step makes a new policy version; otherwise every epoch does. needs_trajectories: else they are
    not read."""

    @property
    def by_step(self) -> bool: ...

    @property
    def needs_trajectories(self) -> bool: ...

    async def train(self, batch: StepBatch) -> StepMetrics | None:
        """Trains on a batch; None where there was nothing to train on."""
        ...

    async def publish(self, version: int, generation: int) -> Published:
        """Makes the weights as they are readable under a version."""
        ...

    async def save(self, version: int, generation: int, progress: dict[str, Any]) -> None:
        """Checkpoints everything that training goes on from."""
        ...

    async def restore(self, step: int) -> int | None:
        """Goes back to the newest checkpoint at or before a step; returns its step, None where there is none."""
        ...


class ScriptedTrainer:
    """For policies without weights: versions count epochs."""

    by_step = False
    needs_trajectories = False

    async def train(self, batch: StepBatch) -> StepMetrics | None:
        del batch
        return None

    async def publish(self, version: int, generation: int) -> Published:
        del version, generation
        return Published("", "")

    async def save(self, version: int, generation: int, progress: dict[str, Any]) -> None:
        del version, generation, progress

    async def restore(self, step: int) -> int | None:
        return step


class GrpoTrainer:
    """GRPO on a model. Torch runs in a thread, so that the learner goes on reading."""

    by_step = True
    needs_trajectories = True

    def __init__(self, engine: TorchEngine, policies: Path, checkpoints: Path, keep: int = 2) -> None:
        self._engine, self._policies, self._checkpoints, self._keep = engine, policies, checkpoints, keep
        self._saved: list[tuple[Path, bool]] = []

    async def train(self, batch: StepBatch) -> StepMetrics | None:
        if not batch.samples:
            return None
        return await asyncio.to_thread(self._engine.train_step, batch.samples)

    async def publish(self, version: int, generation: int) -> Published:
        published = await asyncio.to_thread(publish_weights, self._engine.model, self._policies, version, generation)
        self._forget_policies()
        return Published(str(published.path.resolve()), published.sha256)

    async def save(self, version: int, generation: int, progress: dict[str, Any]) -> None:
        model, optimizer = self._engine.model, self._engine.optimizer
        path = await asyncio.to_thread(
            save_checkpoint, self._checkpoints, model, optimizer, version, generation, progress
        )
        self._saved.append((path, bool(progress.get("last"))))
        self._forget_checkpoints()

    async def restore(self, step: int) -> int | None:
        for folder in sorted(self._checkpoints.glob("checkpoint-*"), reverse=True):
            loaded = await asyncio.to_thread(load_checkpoint, folder, self._engine.model, self._engine.optimizer)
            if int(loaded.progress["step"]) <= step:
                return int(loaded.progress["step"])
        return None

    def _forget_checkpoints(self) -> None:
        """Keeps the newest ones and those that end an epoch."""
        for path, ends_epoch in self._saved[: -self._keep]:
            if not ends_epoch:
                shutil.rmtree(path, ignore_errors=True)
        self._saved = self._saved[-self._keep :]

    def _forget_policies(self) -> None:
        """Samplers ask for the newest version; a few older ones stay for those that lag."""
        for path in sorted(self._policies.glob("policy-*.safetensors"))[: -self._keep - 2]:
            path.unlink(missing_ok=True)
