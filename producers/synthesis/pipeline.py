"""From one seed to its verified variants: profile, plan, execute, rewrite, critique, augment.

    seed ─▶ profile ─▶ plan ─▶ execute ─▶ rewrite ─▶ critique ─▶ augment ─▶ variant
                        ▲  re-plan │         ▲  refine  │           │
                        └──────────┘         └──────────┘      next attempt

Pure apart from the simulators it runs: the outcome is a function of the seed, the rules and the digests of the pool,
whichever worker computes it and however often. All randomness is `stream` of the run's seed, the seed's id, the
variant's index and the attempt.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random

from producers.environments.port import TaskSource
from producers.synthesis.augment import augment
from producers.synthesis.backend import Backend, JudgeRequest, PatchRequest, PlanRequest, RewriteRequest, Script
from producers.synthesis.critique import Critic, calls_of, profile_of, structure_fault
from producers.synthesis.errors import FAULTS, StageError
from producers.synthesis.execute import Execution, Patch, execute
from producers.synthesis.plan import Plan
from producers.synthesis.profile import Profile, distance, parsed, profile
from producers.synthesis.rewrite import base_task, rewrite
from schemas.identity import content_digest, digest, variant_id
from schemas.rules import SynthesisRules, canonical_json
from schemas.task import Category, TaskDefinition

DETAIL_LIMIT = 4_000
STAGES = ("profile", "plan", "execute", "rewrite", "critique", "augment")


@dataclass(frozen=True, slots=True)
class SeedTask:
    """seed: its id. task: its definition. run_seed: the seed of the run's rules."""

    seed: str
    task: TaskDefinition
    run_seed: int


@dataclass(frozen=True, slots=True)
class StageReport:
    """A stage of one attempt. index: of the variant. ordinal: how often the stage ran before in this attempt."""

    index: int
    attempt: int
    stage: str
    ordinal: int
    ok: bool
    reason: str
    patches: tuple[str, ...]
    detail: str
    tokens: int = 0
    backbone: str = "rules"


@dataclass(frozen=True, slots=True)
class Rejection:
    """An attempt that ended without a variant: the stage that ended it, and why."""

    index: int
    attempt: int
    stage: str
    reason: str
    patches: tuple[str, ...]
    tokens: int = 0
    backbone: str = "rules"


@dataclass(frozen=True, slots=True)
class SynthesisOutcome:
    """All that became of a seed, in the order in which it happened."""

    seed: str
    reports: tuple[StageReport, ...]
    variants: tuple[TaskDefinition, ...]
    rejections: tuple[Rejection, ...]


def synthesise(
    seed: SeedTask, source: TaskSource, pool: Collection[str], rules: SynthesisRules, backend: Backend
) -> SynthesisOutcome:
    """pool: `content_digest` of every member. Never raises for what a seed or a backend does; it is in the outcome."""
    return _Synthesis(seed, source, frozenset(pool), rules, backend).outcome()


def stream(*parts: int | str) -> int:
    """63 bits that depend on all parts and on nothing else."""
    return int(digest(["synthesis", *parts])[:16], 16) >> 1


class _Ended(Exception):  # noqa: N818 - the end of an attempt, not an error
    def __init__(self, stage: str, reason: str, patches: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.stage = stage
        self.reason = reason
        self.patches = patches


@dataclass(slots=True)
class _Synthesis:
    """The walk of one seed; `blocked` grows with every function that failed and feeds the next plan."""

    seed: SeedTask
    source: TaskSource
    known: frozenset[str]
    rules: SynthesisRules
    backend: Backend
    blocked: set[str] = field(default_factory=set)
    reports: list[StageReport] = field(default_factory=list)
    variants: list[TaskDefinition] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)

    def outcome(self) -> SynthesisOutcome:
        try:
            self._variants()
        except _Ended as end:
            self._reject(0, 0, end)
        return SynthesisOutcome(self.seed.seed, tuple(self.reports), tuple(self.variants), tuple(self.rejections))

    def _variants(self) -> None:
        shape = self._profiled()
        for index in range(self.rules.variants_per_seed):
            for attempt in range(self.rules.max_attempts):
                try:
                    variant = _VariantAttempt(self, shape, index, attempt).variant()
                except _Ended as end:
                    self._reject(index, attempt, end)
                    continue
                self.variants.append(variant)
                self.known |= {content_digest(variant)}
                break

    def _profiled(self) -> Profile:
        task = self.seed.task
        try:
            shape = profile_of(task, self.source, task.category)
        except FAULTS as error:
            self.report(0, 0, "profile", False, str(error))
            raise _Ended("profile", f"the seed does not run: {error}") from None
        if not shape.calls:
            self.report(0, 0, "profile", False, "the seed has no calls")
            raise _Ended("profile", "the seed has no calls")
        self.report(0, 0, "profile", True, detail=_shape_detail(shape))
        return shape

    def report(
        self,
        index: int,
        attempt: int,
        stage: str,
        ok: bool,
        reason: str = "",
        patches: tuple[str, ...] = (),
        detail: object = None,
    ) -> None:
        at = (index, attempt, stage)
        ordinal = sum((r.index, r.attempt, r.stage) == at for r in self.reports)
        text = canonical_json(detail if detail is not None else {})
        text = text if len(text) <= DETAIL_LIMIT else "{}"
        name = self.backend.name
        self.reports.append(StageReport(index, attempt, stage, ordinal, ok, reason, patches, text, backbone=name))

    def _reject(self, index: int, attempt: int, end: _Ended) -> None:
        self.rejections.append(
            Rejection(index, attempt, end.stage, end.reason, end.patches, backbone=self.backend.name)
        )


@dataclass(slots=True)
class _VariantAttempt:
    """One full attempt at one variant. Raises `_Ended` where it leads nowhere."""

    whole: _Synthesis
    shape: Profile
    index: int
    attempt: int

    def variant(self) -> TaskDefinition:
        execution = self._executed()
        critic = self._critic(frozenset())
        request, script, base = self._worded(execution, critic)
        return self._augmented(execution, request, script, base)

    def _executed(self) -> Execution:
        end = _Ended("plan", "no plan was tried")
        for replan in range(self.whole.rules.replans + 1):
            try:
                return self._run(self._planned(replan))
            except _Ended as failure:
                end = failure
        raise end

    def _planned(self, replan: int) -> Plan:
        task = self.whole.seed.task
        category = Category.LONG_CONTEXT if task.category == Category.LONG_CONTEXT else Category.BASE
        request = PlanRequest(
            task, self.shape, category.value, frozenset(self.whole.blocked), self._stream("plan", replan)
        )
        try:
            plan = self.whole.backend.propose(request)
        except StageError as error:
            raise self._failed("plan", error) from None
        detail = {"blocked": sorted(self.whole.blocked), "turns": [[s.function for s in turn] for turn in plan.turns]}
        self._report("plan", detail=detail)
        return plan

    def _run(self, plan: Plan) -> Execution:
        try:
            execution = execute(plan, self.whole.source, self._patch, self.whole.rules.max_attempts)
        except (StageError, *FAULTS) as error:
            raise self._failed("execute", error) from None
        found = profile(
            calls_of(execution.calls), [parsed(r) for turn in execution.results for r in turn], self.shape.category
        )
        apart = distance(self.shape, found)
        far = structure_fault(apart, self._bound())
        patches = tuple(patch.text() for patch in execution.patches)
        if far is not None:
            raise self._failed("execute", StageError(far), patches)
        self._report("execute", patches=patches, detail={"distance": f"{float(apart):.4f}"})
        return execution

    def _patch(self, plan: Plan, step: int, call: str, result: str) -> Patch | None:
        return self.whole.backend.patch(PatchRequest(plan, step, call, result))

    def _worded(self, execution: Execution, critic: Critic) -> tuple[RewriteRequest, Script, TaskDefinition]:
        complaint = ""
        for refinement in range(self.whole.rules.refinements + 1):
            request = RewriteRequest(execution, self._stream("rewrite"), refinement, complaint)
            try:
                script = rewrite(request, self.whole.backend)
            except StageError as error:
                raise self._failed("rewrite", error) from None
            self._report("rewrite", detail={"refinement": refinement})
            base = base_task(execution, script, self.whole.seed.task)
            complaint = self._complaint(critic, base, execution)
            if not complaint:
                self._report("critique", detail={"refinement": refinement})
                return request, script, base
            self._report("critique", complaint)
        raise _Ended("critique", complaint, tuple(patch.text() for patch in execution.patches))

    def _augmented(
        self, execution: Execution, request: RewriteRequest, script: Script, base: TaskDefinition
    ) -> TaskDefinition:
        task, backend = self.whole.seed.task, self.whole.backend
        gaps = backend.gaps(request, script) if task.category == Category.MISSING_PARAMETER else ()
        rng = Random(self._stream("augment"))
        try:
            made = augment(base, task.category, gaps, task.source == "bfcl", rng)
        except StageError as error:
            raise self._failed("augment", error) from None
        complaint = self._complaint(self._critic(self.whole.known | {content_digest(task)}), made, execution)
        if complaint:
            raise self._failed("augment", StageError(complaint))
        variant = replace(made, task=variant_id(self.whole.seed.seed, content_digest(made)))
        self._report("augment", detail={"category": made.category, "variant": variant.task})
        return variant

    def _complaint(self, critic: Critic, definition: TaskDefinition, execution: Execution) -> str:
        fault = critic.fault(definition)
        if fault is not None:
            return f"{fault.gate.value}: {fault.reason}"
        return critic.complaint(JudgeRequest(definition, execution)) or ""

    def _critic(self, known: frozenset[str]) -> Critic:
        return Critic(self.whole.source, self.whole.backend, self.shape, self._bound(), known)

    def _bound(self) -> Fraction:
        return Fraction(self.whole.rules.profile_distance)

    def _stream(self, *parts: int | str) -> int:
        seed = self.whole.seed
        return stream(seed.run_seed, seed.seed, self.index, self.attempt, *parts)

    def _report(self, stage: str, reason: str = "", patches: tuple[str, ...] = (), detail: object = None) -> None:
        self.whole.report(self.index, self.attempt, stage, not reason, reason, patches, detail)

    def _failed(self, stage: str, error: Exception, patches: tuple[str, ...] = ()) -> _Ended:
        reason = str(error)
        if isinstance(error, StageError):
            self.whole.blocked.update(error.functions)
        self._report(stage, reason, patches)
        return _Ended(stage, reason, patches)


def _shape_detail(shape: Profile) -> dict[str, object]:
    return {
        "calls": list(shape.calls),
        "coreference": shape.coreference,
        "depth": shape.depth,
        "edges": len(shape.edges),
        "flow": list(shape.flow),
        "topology": shape.topology,
    }
