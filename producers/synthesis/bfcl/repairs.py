"""Patches for what BFCL's simulators refuse: the smallest thing in the initial state that lets the call through."""

import json
import re
from collections.abc import Callable

from producers.environments.calls import Call, parse_call
from producers.synthesis.backend import PatchRequest
from producers.synthesis.bfcl.toolboxes import OWNERS
from producers.synthesis.execute import Patch, patch_of

Repair = Callable[[str, Call, PatchRequest], Patch | None]
_DOORS = ("driver", "passenger", "rear_left", "rear_right")


def repair(request: PatchRequest) -> Patch | None:
    """The patch for a refusal, or None where the plan itself is at fault."""
    call = parse_call(request.call)
    owner = OWNERS[call.name]
    for pattern, make in _REPAIRS:
        if re.search(pattern, request.result):
            return make(owner, call, request)
    return None


def _authenticated(owner: str, call: Call, request: PatchRequest) -> Patch | None:
    del call, request
    if owner == "TicketAPI":
        return patch_of("Nora Fields", owner, "current_user")
    return patch_of(True, owner, "authenticated")


def _workspace_user(owner: str, call: Call, request: PatchRequest) -> Patch | None:
    del call
    users = json.loads(request.plan.initial_state).get(owner, {}).get("user_map", {})
    return patch_of(next(iter(users.values()), "USR001"), owner, "current_user")


def _market(owner: str, call: Call, request: PatchRequest) -> Patch | None:
    del call, request
    return patch_of("Open", owner, "market_status")


def _funds(owner: str, call: Call, request: PatchRequest) -> Patch | None:
    if owner == "TravelAPI":
        return _card(owner, call, request)
    needed = re.search(r"required \$([\d.]+)", request.result)
    return patch_of(round(float(needed.group(1)) * 2, 2) if needed else 50_000.0, owner, "account_info", "balance")


def _doors(owner: str, call: Call, request: PatchRequest) -> Patch | None:
    del call, request
    return patch_of(dict.fromkeys(_DOORS, "locked"), owner, "doorStatus")


def _engine(owner: str, call: Call, request: PatchRequest) -> Patch | None:
    del call, request
    return patch_of("running", owner, "engineState")


def _tank(owner: str, call: Call, request: PatchRequest) -> Patch | None:
    del call, request
    return patch_of(4.0, owner, "fuelLevel")


def _token(owner: str, call: Call, request: PatchRequest) -> Patch | None:
    del call, request
    return patch_of(3600, owner, "token_expires_in")


def _card(owner: str, call: Call, request: PatchRequest) -> Patch | None:
    del request
    card = dict(call.kwargs).get("card_id")
    return patch_of(90_000.0, owner, "credit_card_list", card, "balance") if isinstance(card, str) else None


def _file(owner: str, call: Call, request: PatchRequest) -> Patch | None:
    """Puts the missing file into the top folder, where the plan still is if it has not changed folders."""
    arguments = dict(call.kwargs)
    name = arguments.get("file_name") or arguments.get("source")
    moved = any(step.function == "cd" for step in request.plan.steps[: request.step])
    root = json.loads(request.plan.initial_state)[owner].get("root", {})
    if moved or not isinstance(name, str) or not root:
        return None
    return patch_of(
        {"type": "file", "content": "All figures were checked twice."},
        owner,
        "root",
        next(iter(root)),
        "contents",
        name,
    )


_REPAIRS: tuple[tuple[str, Repair], ...] = (
    ('"success": false', _authenticated),
    ("not authenticated|Please log in|Please authenticate", _authenticated),
    ("No user is currently logged in", _workspace_user),
    ("Market is closed", _market),
    ("Insufficient funds", _funds),
    ("All doors must be locked", _doors),
    ("Start the engine before", _engine),
    ("Cannot fill gas above", _tank),
    ("Token expired|Token not initialized", _token),
    ("nsufficient (balance|funds)|Balance is less", _card),
    ("No such file", _file),
)
