"""From a seed's outcome to the events that record it, all derived from the seed's event: redone, they are equal."""

import json
from dataclasses import dataclass

from producers.synthesis.pipeline import DETAIL_LIMIT, Rejection, StageReport, SynthesisOutcome
from schemas.codec import encode
from schemas.envelope import E, Producer, derive
from schemas.identity import content_digest
from schemas.pool import SeedSettled, Settlement, VariantVerified
from schemas.rules import canonical_json
from schemas.seals import BoundarySeedSelected
from schemas.synthesis import StageFinished, VariantRejected
from schemas.task import TaskDefinition

_REASON_LIMIT = 500


@dataclass(frozen=True, slots=True)
class SeedRecording:
    """Encoded events. The story and the variants are acknowledged before the settlement is written."""

    story: tuple[bytes, ...]
    variants: tuple[bytes, ...]
    settled: bytes


def record(seed: BoundarySeedSelected, outcome: SynthesisOutcome) -> SeedRecording:
    """Every stage and rejection, the variants in the order of their index, and the one settlement."""
    stages = [_encoded(_stage(seed, report), seed) for report in outcome.reports]
    rejections = [_encoded(_rejected(seed, rejection), seed) for rejection in outcome.rejections]
    variants = [_encoded(_verified(seed, definition), seed) for definition in outcome.variants]
    return SeedRecording((*stages, *rejections), tuple(variants), _settled(seed, len(variants)))


def record_error(seed: BoundarySeedSelected, reason: str) -> SeedRecording:
    """A seed that could not be worked on at all."""
    rejection = Rejection(0, 0, "execute", reason, ())
    return SeedRecording((_encoded(_rejected(seed, rejection), seed),), (), _settled(seed, 0))


def _stage(seed: BoundarySeedSelected, report: StageReport) -> StageFinished:
    return StageFinished(
        seed=seed.seed,
        task=seed.task,
        epoch=seed.epoch,
        step=seed.step,
        index=report.index,
        attempt=report.attempt,
        stage=report.stage,
        ordinal=report.ordinal,
        ok=report.ok,
        detail=_detail(report),
        patches=report.patches,
        tokens=report.tokens,
        backbone=report.backbone,
    )


def _detail(report: StageReport) -> str:
    if not report.reason:
        return report.detail
    reason = report.reason[:_REASON_LIMIT]
    text = canonical_json({**json.loads(report.detail), "reason": reason})
    return text if len(text) <= DETAIL_LIMIT else canonical_json({"reason": reason})


def _rejected(seed: BoundarySeedSelected, rejection: Rejection) -> VariantRejected:
    return VariantRejected(
        seed=seed.seed,
        task=seed.task,
        epoch=seed.epoch,
        step=seed.step,
        index=rejection.index,
        attempt=rejection.attempt,
        stage=rejection.stage,
        reason=rejection.reason[:_REASON_LIMIT],
        patches=rejection.patches,
        tokens=rejection.tokens,
        backbone=rejection.backbone,
    )


def _verified(seed: BoundarySeedSelected, definition: TaskDefinition) -> VariantVerified:
    return VariantVerified(
        seed=seed.seed,
        epoch=seed.epoch,
        step=seed.step,
        rank=seed.rank,
        definition=definition,
        content=content_digest(definition),
    )


def _settled(seed: BoundarySeedSelected, variants: int) -> bytes:
    outcome = Settlement.DONE if variants else Settlement.FAILED
    event = SeedSettled(
        generation=0, seed=seed.seed, epoch=seed.epoch, step=seed.step, outcome=outcome, variants=variants
    )
    return _encoded(event, seed)


def _encoded(event: E, seed: BoundarySeedSelected) -> bytes:
    return encode(derive(event, seed.envelope, Producer.SYNTHESIS, seed.seed))
