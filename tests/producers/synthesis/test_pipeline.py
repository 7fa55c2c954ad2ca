"""The walk of a seed: determinism, budgets, the blocklist, refinement and what the reports say."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from producers.environments.bfcl import BfclSource
from producers.environments.workbench.source import WorkbenchSource
from producers.synthesis.backend import (
    Criterion,
    JudgeRequest,
    Opinion,
    PlanRequest,
    RewriteRequest,
    Script,
)
from producers.synthesis.errors import StageError
from producers.synthesis.pipeline import DETAIL_LIMIT, STAGES, SeedTask, SynthesisOutcome, stream, synthesise
from producers.synthesis.plan import Plan, Step
from producers.synthesis.rules_backend import RulesBackend
from schemas.identity import content_digest, variant_id
from schemas.rules import SynthesisRules
from schemas.task import TaskDefinition, Turn

SOURCE = BfclSource()
WORKBENCH = WorkbenchSource(train=8, heldout=0)
TASK = next(iter(SOURCE.tasks("train")))
ROOT = Path(__file__).parents[3]


def run(
    task: TaskDefinition = TASK,
    rules: SynthesisRules | None = None,
    backend: RulesBackend | None = None,
    pool: Sequence[str] = (),
    seed: str = "seed",
    run_seed: int = 1,
) -> SynthesisOutcome:
    return synthesise(
        SeedTask(seed, task, run_seed), SOURCE, pool, rules or SynthesisRules(), backend or RulesBackend()
    )


def test_the_outcome_is_a_function_of_its_inputs_however_often_it_is_computed() -> None:
    backend = RulesBackend()
    assert run(backend=backend) == run(backend=backend) == run()


def test_another_seed_id_or_run_seed_gives_other_variants() -> None:
    ids = {variant.task for outcome in (run(), run(seed="other"), run(run_seed=2)) for variant in outcome.variants}
    assert len(ids) == 6


SCRIPT = """
import hashlib
from dataclasses import asdict
import pytest

from producers.environments.bfcl import BfclSource
from producers.environments.workbench.source import WorkbenchSource
from producers.synthesis.pipeline import SeedTask, synthesise
from producers.synthesis.rules_backend import RulesBackend
from schemas.rules import SynthesisRules, canonical_json
bfcl, bench = BfclSource(), WorkbenchSource(train=8, heldout=0)
seeds = [(bfcl, task) for task in list(bfcl.tasks("train"))[::25]] + [(bench, task) for task in bench.tasks("train")]
made = [asdict(synthesise(SeedTask(task.task, task, 5), s, (), SynthesisRules(), RulesBackend())) for s, task in seeds]
print(hashlib.sha256(canonical_json(made).encode()).hexdigest())
"""


def test_processes_with_different_hash_seeds_give_the_same_outcomes() -> None:
    digests = set()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True, cwd=ROOT
        )
        digests.add(done.stdout.strip())
    assert len(digests) == 1
    assert len(digests.pop()) == hashlib.sha256().digest_size * 2


def test_variant_ids_derive_from_the_seed_and_the_content() -> None:
    for variant in run().variants:
        assert variant.task == variant_id("seed", content_digest(variant))


def test_variants_are_as_many_as_the_rules_ask_for_and_each_stage_leaves_a_report() -> None:
    outcome = run(rules=SynthesisRules(variants_per_seed=3))
    assert len(outcome.variants) == 3
    assert [report.stage for report in outcome.reports if (report.index, report.ok) == (0, True)][:6] == list(STAGES)
    keys = [(r.index, r.attempt, r.stage, r.ordinal) for r in outcome.reports]
    assert len(set(keys)) == len(keys)
    for report in outcome.reports:
        assert len(report.detail) <= DETAIL_LIMIT
        json.loads(report.detail)
        assert (report.backbone, report.tokens) == ("rules", 0)
        assert report.ok == (not report.reason)


def test_no_variant_is_asked_for_where_the_rules_say_zero() -> None:
    assert run(rules=SynthesisRules(variants_per_seed=0)).variants == ()


def test_a_variant_that_the_pool_has_already_is_not_made_again() -> None:
    before = run()
    after = run(pool=[content_digest(variant) for variant in before.variants])
    assert not {variant.task for variant in before.variants} & {variant.task for variant in after.variants}
    assert any("duplicate" in rejection.reason for rejection in after.rejections)


def test_a_seed_that_does_not_run_is_rejected_at_its_profile() -> None:
    outcome = run(replace(TASK, initial_state="broken"))
    assert outcome.variants == ()
    assert [rejection.stage for rejection in outcome.rejections] == ["profile"]


@pytest.mark.parametrize(
    "task",
    [
        replace(TASK, classes=("NoSuchClass",)),
        replace(TASK, turns=()),
        replace(TASK, turns=(Turn(("Hm.",), ("not a call",)),)),
        replace(TASK, turns=(Turn(("Hm.",), ("no_such_function(a=1)",)),)),
        replace(TASK, classes=("TwitterAPI",), initial_state='{"TwitterAPI":{"tweets":{"1":7}}}'),
        replace(TASK, classes=("GorillaFileSystem",), initial_state='{"GorillaFileSystem":{"root":{}}}'),
        replace(TASK, classes=("GorillaFileSystem",), initial_state='{"GorillaFileSystem":[]}'),
        replace(TASK, classes=("TicketAPI",), initial_state='{"TicketAPI":{"ticket_queue":[3]}}'),
    ],
)
def test_an_odd_seed_ends_in_rejections_and_raises_nothing(task: TaskDefinition) -> None:
    outcome = run(task)
    assert outcome.variants or outcome.rejections
    assert all(rejection.reason for rejection in outcome.rejections)


def test_a_source_without_rules_is_rejected_and_nothing_is_raised() -> None:
    outcome = synthesise(
        SeedTask("s", replace(TASK, source="elsewhere"), 1), SOURCE, (), SynthesisRules(), RulesBackend()
    )
    assert outcome.variants == ()
    assert {rejection.stage for rejection in outcome.rejections} == {"plan"}


class Stubborn(RulesBackend):
    """Plans a call that no patch repairs, and remembers what it was told to avoid."""

    def __init__(self) -> None:
        super().__init__()
        self.blocked: list[frozenset[str]] = []

    def propose(self, request: PlanRequest) -> Plan:
        self.blocked.append(request.blocked)
        turns = ((Step("get_tweet", (("tweet_id", 12345),)),),)
        return Plan("bfcl", request.task.classes, request.task.initial_state, request.category, "a trip", turns)


def test_re_plans_and_attempts_are_bounded_and_the_blocklist_grows() -> None:
    backend = Stubborn()
    rules = SynthesisRules(variants_per_seed=1, max_attempts=3, replans=2)
    outcome = run(rules=rules, backend=backend)
    assert outcome.variants == ()
    assert len(backend.blocked) == 3 * (2 + 1)
    assert backend.blocked[0] == frozenset()
    assert all(blocked == {"get_tweet"} for blocked in backend.blocked[1:])
    assert [(rejection.attempt, rejection.stage) for rejection in outcome.rejections] == [
        (attempt, "execute") for attempt in range(3)
    ]


class Demanding(RulesBackend):
    """Finds every first text unnatural."""

    def __init__(self, patience: int) -> None:
        super().__init__()
        self.patience = patience
        self.complaints: list[str] = []
        self.judged = 0

    def rewrite(self, request: RewriteRequest) -> Script:
        self.complaints.append(request.complaint)
        self.judged = request.refinement
        return super().rewrite(request)

    def judge(self, request: JudgeRequest) -> Sequence[Opinion]:
        if self.judged < self.patience:
            return (Opinion(Criterion.NATURAL, False, "it sounds like a machine"),)
        return super().judge(request)


def test_a_text_is_refined_once_with_the_complaint_at_hand() -> None:
    backend = Demanding(patience=1)
    assert len(run(rules=SynthesisRules(variants_per_seed=1), backend=backend).variants) == 1
    assert backend.complaints == ["", "natural: it sounds like a machine"]


def test_a_second_complaint_ends_the_attempt() -> None:
    backend = Demanding(patience=2)
    outcome = run(rules=SynthesisRules(variants_per_seed=1, max_attempts=2), backend=backend)
    assert outcome.variants == ()
    assert [rejection.stage for rejection in outcome.rejections] == ["critique", "critique"]
    assert len(backend.complaints) == 4


def test_patches_are_recorded_where_they_were_needed() -> None:
    tasks = [task for task in SOURCE.tasks("train") if "VehicleControlAPI" in task.classes][:12]
    reports = [report for task in tasks for report in run(task).reports]
    patched = [report for report in reports if report.patches]
    assert patched
    assert all(report.stage == "execute" and "=" in report.patches[0] for report in patched)


def test_streams_depend_on_every_part() -> None:
    assert len({stream(1, "a"), stream(2, "a"), stream(1, "b"), stream(1, "a", 0)}) == 4
    assert all(0 <= stream(number) < 2**63 for number in range(50))


def test_stage_errors_carry_the_functions_to_blame() -> None:
    assert StageError("it fails", ("f",)).functions == ("f",)
