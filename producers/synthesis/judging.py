"""What the rules judge checks of every source's variants, and the words that give names away."""

import re
from collections.abc import Collection

from producers.environments.calls import parse_call
from producers.synthesis.backend import Criterion, JudgeRequest, Opinion

_QUOTED = re.compile(r"(?<!\w)'[^']*'(?!\w)")
_CODE_LIKE = re.compile(r"\b(?:[A-Za-z]+(?:_[A-Za-z0-9_]+|[a-z][A-Z]\w*)\b|[A-Za-z_]\w*(?=\())")


def unquoted(text: str, stand_in: str = " ") -> str:
    """A request without its quoted parts, which are content."""
    return _QUOTED.sub(stand_in, text)


def leaked(text: str, names: Collection[str] = ()) -> list[str]:
    """Words outside quotes that are one of the names, or that look like a parameter or a call."""
    bare = unquoted(text)
    return [*(set(re.findall(r"[A-Za-z_]\w*", bare)) & set(names)), *_CODE_LIKE.findall(bare)]


def opinion(criterion: Criterion, complaint: str | None) -> Opinion:
    """The criterion holds where there is no complaint."""
    return Opinion(criterion, complaint is None, complaint or "")


def calls_fault(request: JudgeRequest) -> str | None:
    """Whether the ground truth is other than what was executed."""
    made = tuple(turn.ground_truth for turn in request.definition.turns if turn.ground_truth)
    return None if made == request.execution.calls else "the calls are not those that were executed"


def state_fault(request: JudgeRequest) -> str | None:
    """Whether the initial state is other than the plan's."""
    same = request.definition.initial_state == request.execution.plan.initial_state
    return None if same else "the initial state is not the one the plan ran in"


def open_fault(request: JudgeRequest) -> str | None:
    """A turn that asks and has no calls must either lack a tool or be answered by the next request."""
    turns = request.definition.turns
    for turn, after in zip(turns, (*turns[1:], None), strict=True):
        if turn.ground_truth or not turn.requests:
            continue
        needed = {parse_call(text).name for text in after.ground_truth} if after is not None else set()
        if after is None or not needed:
            return "an open request is never completed"
        if not (needed & set(turn.withheld)) and not after.requests:
            return "an open request lacks neither a tool nor a value"
    return None


def repeats_fault(request: JudgeRequest) -> str | None:
    """Whether two turns are worded alike."""
    texts = [text for turn in request.definition.turns for text in turn.requests]
    return "two turns ask the same thing in the same words" if len(set(texts)) < len(texts) else None
