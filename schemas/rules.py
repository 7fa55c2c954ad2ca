"""What decides: the settings that shape the curriculum and the training, recorded in every EpochOpened.

Nothing else may influence a decision. Thresholds are decimals, compared exactly with rational rewards. The
canonical JSON of `Rules` (sorted keys, no white space, decimals as strings) is what events carry and digests cover.
Constants that the paper publishes are its values (arXiv 2606.19047); it publishes no quota, cooldown or seeds per step.
"""

import json
from collections.abc import Callable
from decimal import Decimal
from json.encoder import encode_basestring_ascii
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

# Without trailing zeros, so that 0.2 and 0.20 are one text.
Threshold = Annotated[Decimal, Field(ge=0, le=1), AfterValidator(Decimal.normalize)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)


class MeasureRules(_Frozen):
    """Zones of the mean progress over the last `window` groups."""

    window: int = Field(1, ge=1, le=64)
    alpha_low: Threshold = Decimal("0.20")
    alpha_high: Threshold = Decimal("0.85")
    min_variance: Threshold = Field(Decimal("0"), description="a boundary task's variance is above this")

    @model_validator(mode="after")
    def _ordered(self) -> "MeasureRules":
        if self.alpha_low > self.alpha_high:
            raise ValueError("alpha_low must not exceed alpha_high")
        return self


class SelectRules(_Frozen):
    """Which boundary tasks become seeds at each step."""

    rank_by: Literal["phi", "variance"] = "phi"
    quota: int = Field(2, ge=0, le=2048, description="seeds per category and step (M_tau)")
    cooldown_steps: int = Field(0, ge=0, description="steps before a task may be a seed again")


class PoolRules(_Frozen):
    """Injection and retirement at an epoch boundary."""

    inject_share: Threshold = Field(Decimal("0.20"), description="beta, of the active pool per epoch")
    p_max: int = Field(400, ge=0, description="generated tasks in the pool at most")
    retire: bool = True
    burn_in: Threshold = Decimal("0.20")
    drift_low: Threshold = Decimal("0.20")
    drift_high: Threshold = Decimal("0.95")
    patience: int = Field(1, ge=1, le=64)
    protect_originals: bool = True
    probes_per_epoch: int = Field(1, ge=0)


class SynthesisRules(_Frozen):
    """Budgets of a seed and how long a boundary waits for it."""

    variants_per_seed: int = Field(2, ge=0, le=64)
    max_attempts: int = Field(3, ge=1, description="full attempts per variant before it is dropped")
    replans: int = Field(3, ge=0)
    refinements: int = Field(1, ge=0)
    profile_distance: Threshold = Field(Decimal("0.35"), description="bound on the distance of profiles")
    lag_steps: int = Field(0, ge=0, description="a boundary waits for the seeds up to this many steps back")
    settle_seconds: float = Field(120.0, gt=0, description="then a seed still open is settled as expired")


class RolloutRules(_Frozen):
    """Groups and attempts."""

    k: int = Field(16, ge=2, le=1024, description="attempts per group")
    tasks_per_step: int = Field(32, ge=1, le=2048)
    temperature: float = Field(1.0, ge=0)
    max_calls_per_turn: int = Field(20, ge=1)
    max_assistant_messages: int = Field(8, ge=1, description="assistant messages per turn")
    max_tokens: int = Field(64, ge=1, description="sampled tokens per assistant message")
    deadline_seconds: float = Field(120.0, gt=0, description="a step's groups not seen by then are missing")


class LearnerRules(_Frozen):
    """GRPO."""

    learning_rate: float = Field(1e-6, ge=0)
    clip_low: float = Field(0.2, gt=0)
    clip_high: float = Field(0.28, gt=0)
    kl_coefficient: float = Field(0.0, ge=0)
    importance_cap: float = Field(2.0, gt=0, description="truncation of sampler-trainer importance weights")
    max_gradient_norm: float = Field(1.0, gt=0)
    micro_batch_tokens: int = Field(16384, ge=256)
    updates_per_step: int = Field(1, ge=1)
    max_staleness: int = Field(1, ge=0, description="policy versions behind beyond which a group is not trained on")
    steps_in_flight: int = Field(1, ge=1, le=1)
    evaluate_tasks: int = Field(0, ge=0, description="held-out tasks per evaluation; 0: none")
    evaluate_k: int = Field(4, ge=1)
    evaluate_every: int = Field(1, ge=1, description="epochs from one evaluation to the next; the last epoch has one")


class Rules(_Frozen):
    """Everything that decides. `canonical()` is the recorded form."""

    seed: int = Field(1, ge=0, lt=2**63)
    source: str = "workbench"
    pool_tasks: int = Field(0, ge=0, description="original tasks that enter the pool; 0: all of the train split")
    epochs: int = Field(5, ge=1)
    curriculum: Literal["rods", "static", "random"] = "rods"
    measure: MeasureRules = MeasureRules()
    select: SelectRules = SelectRules()
    pool: PoolRules = PoolRules()
    synthesis: SynthesisRules = SynthesisRules()
    rollout: RolloutRules = RolloutRules()
    learner: LearnerRules = LearnerRules()

    def canonical(self) -> str:
        """Canonical JSON: equal rules give equal text."""
        return canonical_json(self.model_dump(mode="json"))

    @classmethod
    def parse(cls, text: str) -> "Rules":
        """The rules of a recorded canonical JSON. Raises pydantic.ValidationError."""
        return cls.model_validate_json(text)


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical_json(value: object) -> str:
    """JSON with sorted keys, no white space and ASCII only, so that equal values give equal bytes."""
    return _CANONICAL.encode(value)


json_text: Callable[[str], str] = encode_basestring_ascii
"""A text alone as canonical JSON."""
