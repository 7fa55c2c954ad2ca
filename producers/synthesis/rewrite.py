"""Turns an executed plan into a base task: all requests written in one go, exactly one per turn."""

from dataclasses import replace

from producers.synthesis.backend import Backend, RewriteRequest, Script
from producers.synthesis.errors import StageError
from producers.synthesis.execute import Execution
from schemas.task import TaskDefinition, Turn


def rewrite(request: RewriteRequest, backend: Backend) -> Script:
    """The backend's script, checked for one request with content per turn. Raises StageError."""
    script = backend.rewrite(request)
    if len(script.requests) != len(request.execution.calls):
        raise StageError("the script has not one request per turn")
    if not all(text.strip() for text in script.requests):
        raise StageError("a request is empty")
    return script


def base_task(execution: Execution, script: Script, seed: TaskDefinition) -> TaskDefinition:
    """The variant before augmentation, in the category of its plan, still under its seed's id."""
    plan = execution.plan
    turns = tuple(
        Turn((text,), calls, plan.withheld) for text, calls in zip(script.requests, execution.calls, strict=True)
    )
    return replace(
        seed,
        category=plan.category,
        classes=plan.classes,
        initial_state=plan.initial_state,
        turns=turns,
        parent=seed.task,
    )
