"""Patches for what BFCL's simulators refuse (repairs.toml), and those that depend on the call or the state."""

import json
import re
from collections.abc import Callable
from pathlib import Path

from producers.environments.calls import Call, parse_call
from producers.environments.jsonlines import Record
from producers.environments.tables import load
from producers.synthesis.backend import PatchRequest
from producers.synthesis.bfcl.toolboxes import OWNERS
from producers.synthesis.execute import Patch, patch_of


class _Repair(Record):
    refusal: str
    only: str = ""
    set: tuple[str, ...] = ()
    to: bool | int | float | str | dict[str, str] = ""
    code: str = ""

    def patch(self, owner: str, call: Call) -> Patch | None:
        arguments = dict(call.kwargs)
        keys = [arguments.get(key[1:-1]) if key.startswith("<") else key for key in self.set]
        texts = [key for key in keys if isinstance(key, str)]
        return patch_of(self.to, owner, *texts) if len(texts) == len(keys) else None


class _Repairs(Record):
    repairs: tuple[_Repair, ...]


def repair(request: PatchRequest) -> Patch | None:
    """The patch for a refusal, or None where the plan itself is at fault."""
    call = parse_call(request.call)
    owner = OWNERS[call.name]
    for entry in _TABLE.repairs:
        if entry.only in ("", owner) and re.search(entry.refusal, request.result):
            return _CODE[entry.code](owner, call, request) if entry.code else entry.patch(owner, call)
    return None


def _workspace_user(owner: str, call: Call, request: PatchRequest) -> Patch | None:
    del call
    users = json.loads(request.plan.initial_state).get(owner, {}).get("user_map", {})
    return patch_of(next(iter(users.values()), "USR001"), owner, "current_user")


def _funds(owner: str, call: Call, request: PatchRequest) -> Patch | None:
    del call
    needed = re.search(r"required \$([\d.]+)", request.result)
    return patch_of(round(float(needed.group(1)) * 2, 2) if needed else 50_000.0, owner, "account_info", "balance")


def _file(owner: str, call: Call, request: PatchRequest) -> Patch | None:
    """Puts the missing file into the top folder, where the plan still is if it has not changed folders."""
    arguments = dict(call.kwargs)
    name = arguments.get("file_name") or arguments.get("source")
    moved = any(step.function == "cd" for step in request.plan.steps[: request.step])
    root = json.loads(request.plan.initial_state)[owner].get("root", {})
    if moved or not isinstance(name, str) or not root:
        return None
    file = {"type": "file", "content": "All figures were checked twice."}
    return patch_of(file, owner, "root", next(iter(root)), "contents", name)


_CODE: dict[str, Callable[[str, Call, PatchRequest], Patch | None]] = {
    "workspace_user": _workspace_user,
    "funds": _funds,
    "file": _file,
}
_TABLE = load(Path(__file__).with_name("repairs.toml"), _Repairs)
