"""What a learner does with a step's batch: train a model, or nothing where the policy has no weights."""

import asyncio
import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from learner.checkpoint import load_checkpoint, publish_weights, save_checkpoint
from learner.checkpoint_files import read_progress, saved_checkpoints
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
        """Checkpoints all that training goes on from. `version` is the step; progress["last"]: it ends an epoch."""
        ...

    async def restore(self, step: int) -> int | None:
        """Goes back to the newest checkpoint at or before a step; returns its step, None without such a checkpoint."""
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
    """GRPO on a model. Torch runs in a thread, so that the learner goes on reading.

    keep: newest steps whose checkpoints stay. named: checkpoints that stay whatever their age.
    """

    by_step = True
    needs_trajectories = True

    def __init__(
        self,
        engine: TorchEngine,
        policies: Path,
        checkpoints: Path,
        keep: int = 2,
        named: Callable[[], Collection[str]] = frozenset,
    ) -> None:
        self._engine, self._policies, self._checkpoints, self._keep = engine, policies, checkpoints, keep
        self._named = named

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
        await asyncio.to_thread(save_checkpoint, self._checkpoints, model, optimizer, version, generation, progress)
        self._forget_checkpoints()

    async def restore(self, step: int) -> int | None:
        for found, folder in reversed(saved_checkpoints(self._checkpoints)):
            if found <= step:
                await asyncio.to_thread(load_checkpoint, folder, self._engine.model, self._engine.optimizer)
                return found
        return None

    def _forget_checkpoints(self) -> None:
        """Keeps those of the newest steps, those that end an epoch, also of learners before this one, and the named."""
        saved = saved_checkpoints(self._checkpoints)
        newest = sorted({step for step, _ in saved})[-self._keep :]
        named = self._named()
        for step, folder in saved:
            if step not in newest and folder.name not in named and not read_progress(folder).get("last"):
                shutil.rmtree(folder, ignore_errors=True)

    def _forget_policies(self) -> None:
        """Samplers ask for the newest version; a few older ones stay for those that lag."""
        for path in sorted(self._policies.glob("policy-*.safetensors"))[: -self._keep - 2]:
            path.unlink(missing_ok=True)
