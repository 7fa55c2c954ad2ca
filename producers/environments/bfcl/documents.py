"""The package's tool documents as tools with JSON schemas."""

from collections.abc import Mapping
from typing import Any

from producers.environments.bfcl.package import tool_documents
from producers.environments.port import Tool

_TYPES = {"dict": "object", "float": "number"}


def tools_of(class_name: str) -> tuple[Tool, ...]:
    """The tools of one class, in the package's order."""
    return tuple(
        Tool(document["name"], _description(document["description"]), _schema(document["parameters"]))
        for document in tool_documents(class_name)
    )


def _description(text: str) -> str:
    """Without the sentence about the whole class that the package puts before each description."""
    return " ".join(text.split("Tool description:", 1)[-1].split())


def _schema(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: _type(item) if key == "type" and isinstance(item, str) else _schema(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_schema(item) for item in value]
    return value


def _type(name: str) -> str:
    return _TYPES.get(name, name)
