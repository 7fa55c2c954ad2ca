"""The learner's process: from settings to a trainer, its provenance, and the loop."""

import asyncio
import hashlib
import importlib.metadata
import logging
import signal
import subprocess
import uuid
from pathlib import Path

from learner.controller import Learner, RunProvenance
from learner.cuts import Cuts
from learner.log import LearnerLog
from learner.trainer import ScriptedTrainer, Trainer
from rods.brokers.connection import connection_of
from rods.clock import now_micros
from rods.run_folder import RunFolder
from rods.settings import Settings
from rods.task_sets import TaskSets, task_sets

logger = logging.getLogger(__name__)

_PACKAGES = ("aiokafka", "bfcl-eval", "faust-streaming", "fastavro", "rods-stream", "torch", "transformers")


def run_learner(settings: Settings) -> None:
    """Trains the run's epochs. Blocks; SIGTERM cancels. Raises LearnerError, SupersededError, LogError."""
    sets = task_sets(settings)
    folder = RunFolder(settings.run_folder)
    cuts = Cuts(folder.archive, folder.checkpoints, settings.checkpoint_steps) if folder.is_embedded else None
    log = LearnerLog(connection_of(settings), settings.prefix, settings.partitions, settings.run_id, now_micros)
    learner = Learner(
        log,
        settings.rules,
        _trainer(settings, cuts),
        provenance(settings, sets),
        sets.originals,
        sets.heldout,
        folder.pools,
        uuid.uuid4().hex,
        cuts,
    )
    asyncio.run(_until_signalled(learner))


async def _until_signalled(learner: Learner) -> None:
    work = asyncio.ensure_future(learner.run())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        logger.info("stopped before the last epoch")


def _trainer(settings: Settings, cuts: Cuts | None) -> Trainer:
    if settings.scripted:
        return ScriptedTrainer()
    import torch

    from learner.engine import TorchEngine
    from learner.model import load_model
    from learner.trainer import GrpoTrainer

    torch.set_num_threads(settings.learner_threads)
    torch.manual_seed(settings.rules.seed)
    model = load_model(settings.policy_folder)
    rules = settings.rules
    reference = load_model(settings.policy_folder) if rules.learner.kl_coefficient > 0 else None
    engine = TorchEngine(model, rules.learner, temperature=rules.rollout.temperature, reference=reference)
    folder = RunFolder(settings.run_folder)
    named = cuts.named if cuts is not None else frozenset
    return GrpoTrainer(engine, folder.policies, folder.checkpoints, named=named)


def provenance(settings: Settings, sets: TaskSets) -> RunProvenance:
    """What the run is made of: code revision, package versions, digests of tasks, model and tokenizer."""
    folder = settings.policy_folder
    return RunProvenance(
        code_revision=code_revision(),
        packages=package_versions(),
        source_digest=sets.digest,
        model_digest="" if settings.scripted else _digest(folder / "model.safetensors"),
        tokenizer_digest="" if settings.scripted else _digest(folder / "tokenizer.json"),
    )


def package_versions() -> dict[str, str]:
    """The versions of what a run's outcome may depend on."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def code_revision() -> str:
    """The commit of the checkout, with a mark where the tree differs from it; empty outside a checkout."""
    root = Path(__file__).resolve().parents[1]
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
