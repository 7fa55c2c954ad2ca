"""Where the installed `bfcl-eval` package keeps its tasks, tool documents and simulators."""

import importlib
import importlib.util
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from producers.environments.errors import TaskSourceError

SIMULATOR_MODULES = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "TwitterAPI": "posting_api",
    "VehicleControlAPI": "vehicle_control",
}
"""The simulators of the multi-turn tasks. A tool document's file has the name of its module."""

_SIMULATORS = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"


def data_folder() -> Path:
    """The package's data folder. Raises TaskSourceError where the package is not installed."""
    spec = importlib.util.find_spec("bfcl_eval")
    if spec is None or not spec.submodule_search_locations:
        raise TaskSourceError("the source bfcl needs its package: pip install --no-deps bfcl-eval==2026.3.23")
    return Path(spec.submodule_search_locations[0]) / "data"


@cache
def simulator_class(name: str) -> type[Any]:
    """The class of a simulator. Raises TaskSourceError for a name that no multi-turn task uses."""
    if name not in SIMULATOR_MODULES:
        raise TaskSourceError(f"the source bfcl has no class {name!r}")
    data_folder()
    found: type[Any] = getattr(importlib.import_module(f"{_SIMULATORS}.{SIMULATOR_MODULES[name]}"), name)
    return found


def task_records(category: str) -> Iterator[tuple[dict[str, Any], list[list[str]]]]:
    """The records of one category in file order, each with its ground truth: one list of calls per turn."""
    folder = data_folder()
    name = f"BFCL_v4_multi_turn_{category}.json"
    for record, answer in zip(_lines(folder / name), _lines(folder / "possible_answer" / name), strict=True):
        if record["id"] != answer["id"]:
            raise TaskSourceError(f"{name} and its answers disagree at {record['id']}")
        yield record, answer["ground_truth"]


def tool_documents(class_name: str) -> list[dict[str, Any]]:
    """The tool documents of one class, in the package's order."""
    return list(_lines(data_folder() / "multi_turn_func_doc" / f"{SIMULATOR_MODULES[class_name]}.json"))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)
