"""The rules backend for BFCL tasks: search over toolboxes, templates, and checks that stand in for a judge."""

import re
from collections.abc import Sequence

from producers.environments.calls import Value, parse_call
from producers.synthesis.backend import (
    Criterion,
    Gap,
    JudgeRequest,
    Opinion,
    PatchRequest,
    PlanRequest,
    RewriteRequest,
    Script,
)
from producers.synthesis.bfcl.planner import propose
from producers.synthesis.bfcl.repairs import repair
from producers.synthesis.bfcl.toolboxes import TOOLBOXES, function_of
from producers.synthesis.bfcl.wording import gaps, spoken, write
from producers.synthesis.execute import Patch
from producers.synthesis.judging import calls_fault, leaked, open_fault, opinion, repeats_fault, state_fault, unquoted
from producers.synthesis.plan import Plan, Ref
from schemas.task import TaskDefinition

_BADLY_FORMED = re.compile(r"[{}]|  |\n")
_LONGEST = 900


class BfclBackend:
    """See `Backend`."""

    @property
    def name(self) -> str:
        return "rules"

    def propose(self, request: PlanRequest) -> Plan:
        return propose(request)

    def patch(self, request: PatchRequest) -> Patch | None:
        return repair(request)

    def rewrite(self, request: RewriteRequest) -> Script:
        return write(request)

    def gaps(self, request: RewriteRequest, script: Script) -> Sequence[Gap]:
        return gaps(request, script)

    def leaks(self, definition: TaskDefinition) -> Sequence[str]:
        names = {name for owner in definition.classes for name in TOOLBOXES[owner].functions}
        content = _content(definition)
        said = (text for turn in definition.turns for text in turn.requests)
        return sorted({word for text in said for word in leaked(text, names) if word in names or word not in content})

    def judge(self, request: JudgeRequest) -> Sequence[Opinion]:
        return (
            opinion(Criterion.MATCHES, _ungrounded(request)),
            opinion(Criterion.CONSISTENT, state_fault(request) or calls_fault(request)),
            opinion(Criterion.COHERENT, repeats_fault(request) or _incoherent(request)),
            opinion(Criterion.NATURAL, _unnatural(request)),
            opinion(Criterion.AMBIGUITY, open_fault(request)),
        )


def _content(definition: TaskDefinition) -> str:
    """The values of all arguments: a request may say them, whatever they look like."""
    calls = [parse_call(text) for turn in definition.turns for text in turn.ground_truth]
    return " ".join(str(value) for call in calls for value in (*call.args, *(value for _, value in call.kwargs)))


def _ungrounded(request: JudgeRequest) -> str | None:
    """A literal argument must have been said by then, or be implied by the words; results ground references."""
    heard = ""
    texts = iter(_per_acting_turn(request.definition))
    for steps, calls in zip(request.execution.plan.turns, request.execution.calls, strict=True):
        heard = f"{heard} {next(texts, '')}"
        for step, text in zip(steps, calls, strict=True):
            planned, implied = dict(step.arguments), function_of(step.function).table.implied
            for name, value in parse_call(text).kwargs:
                reference = isinstance(planned[name], Ref) or (isinstance(planned[name], tuple) and planned[name])
                if reference or name in implied or isinstance(value, bool | dict):
                    continue
                if not all(_hears(heard, item) for item in _said(value)):
                    return f"the {name} of {step.function} is never said"
    return None


def _hears(heard: str, item: str) -> bool:
    """Whether a value was said as a whole: 7 is not heard in 17, nor in 7.5."""
    return re.search(rf"(?<![\w.]){re.escape(item)}(?!\w|\.\d)", heard) is not None


def _said(value: Value) -> list[str]:
    if isinstance(value, list | tuple):
        return [spoken(item) for item in value]
    return [] if value == ".." else [spoken(value)]


def _per_acting_turn(definition: TaskDefinition) -> list[str]:
    """What has been said from the last turn with calls up to each turn with calls."""
    texts, said = [], ""
    for turn in definition.turns:
        said = " ".join((said, *turn.requests))
        if turn.ground_truth:
            texts.append(said)
            said = ""
    return texts


def _incoherent(request: JudgeRequest) -> str | None:
    first = next((text for turn in request.definition.turns for text in turn.requests), "")
    return None if request.execution.plan.goal in first else "the first request does not say what it is all for"


def _unnatural(request: JudgeRequest) -> str | None:
    for turn in request.definition.turns:
        for text in turn.requests:
            if len(text) > _LONGEST or _BADLY_FORMED.search(unquoted(text, "x")):
                return "a request is too long or badly formed"
            if text.rstrip()[-1:] not in (".", "?", "!") or not text[:1].isupper():
                return "a request is no sentence"
    return None
