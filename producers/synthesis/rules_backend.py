"""The `rules` backend: no model, templates and search. One object for every source it has rules for."""

from collections.abc import Mapping, Sequence

from producers.synthesis.backend import (
    Backend,
    Gap,
    JudgeRequest,
    Opinion,
    PatchRequest,
    PlanRequest,
    RewriteRequest,
    Script,
)
from producers.synthesis.bfcl.backend import BfclBackend
from producers.synthesis.errors import StageError
from producers.synthesis.execute import Patch
from producers.synthesis.plan import Plan
from producers.synthesis.workbench import WorkbenchBackend
from schemas.task import TaskDefinition

_MISFITS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What planning raises on a state of another form; seeds come from a log and may hold anything."""


class RulesBackend:
    """Hands each request to the rules of the task's source. Raises StageError for a source without rules."""

    def __init__(self) -> None:
        self._sources: Mapping[str, Backend] = {"bfcl": BfclBackend(), "workbench": WorkbenchBackend()}

    @property
    def name(self) -> str:
        return "rules"

    def propose(self, request: PlanRequest) -> Plan:
        try:
            return self._of(request.task.source).propose(request)
        except _MISFITS as error:
            raise StageError(f"the seed's state is not what its classes expect ({type(error).__name__})") from None

    def patch(self, request: PatchRequest) -> Patch | None:
        return self._of(request.plan.source).patch(request)

    def rewrite(self, request: RewriteRequest) -> Script:
        return self._of(request.execution.plan.source).rewrite(request)

    def gaps(self, request: RewriteRequest, script: Script) -> Sequence[Gap]:
        return self._of(request.execution.plan.source).gaps(request, script)

    def leaks(self, definition: TaskDefinition) -> Sequence[str]:
        return self._of(definition.source).leaks(definition)

    def judge(self, request: JudgeRequest) -> Sequence[Opinion]:
        return self._of(request.definition.source).judge(request)

    def _of(self, source: str) -> Backend:
        if source not in self._sources:
            raise StageError(f"there are no rules for tasks of {source[:40]}")
        return self._sources[source]
