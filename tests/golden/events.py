"""Two sample events of every type, and the bytes that each version of its schema gave them.

`python -m tests.golden.events` adds frames for schema versions that have none. A frame once recorded never changes: it
stands for what lies in people's logs.
"""

import json
import types
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from schemas.catalogue import EVENT_TYPES
from schemas.codec import encode, schema_versions

PATH = Path(__file__).with_name("events.json")
SAMPLES = ("full", "bare")


def sample(event_type: type[Any], filling: str) -> Any:
    """full: every optional value there, two items in each sequence. bare: as little as the type allows."""
    return _record(event_type, filling == "full")


def recorded() -> dict[str, str]:
    """``Kind.vN/sample`` to the frame, hexadecimal."""
    frames: dict[str, str] = json.loads(PATH.read_text()) if PATH.exists() else {}
    return frames


def write() -> list[str]:
    """Adds the missing frames of newest versions; returns their names."""
    frames, added = recorded(), []
    for event_type in EVENT_TYPES:
        for filling in SAMPLES:
            name = f"{event_type.KIND}.v{schema_versions(event_type.KIND)[-1]}/{filling}"
            if name not in frames:
                frames[name] = encode(sample(event_type, filling)).hex()
                added.append(name)
    PATH.write_text(json.dumps(frames, indent=1, sort_keys=True) + "\n")
    return added


def _record(record_type: type[Any], full: bool) -> Any:
    hints = get_type_hints(record_type)
    return record_type(**{field.name: _value(hints[field.name], field.name, full) for field in fields(record_type)})


def _value(hint: Any, name: str, full: bool) -> Any:
    if is_dataclass(hint) and isinstance(hint, type):
        return _record(hint, full)
    if get_origin(hint) in (Union, types.UnionType):
        inner = next(arg for arg in get_args(hint) if arg is not type(None))
        return _value(inner, name, full) if full else None
    if get_origin(hint) is tuple:
        return tuple(_value(get_args(hint)[0], f"{name}-{place}", full) for place in range(2 if full else 0))
    if get_origin(hint) is dict:
        return {key: _value(get_args(hint)[1], key, full) for key in (("b", "a") if full else ())}
    return _plain(hint, name, full)


def _plain(hint: Any, name: str, full: bool) -> Any:
    plain: dict[Any, tuple[Any, Any]] = {
        str: ("", f"{name} α"),
        int: (0, -(7 ** len(name) % 2**40)),
        float: (0.0, len(name) / 8),
        bool: (False, True),
        bytes: (b"", b"\x00\xff" + name.encode()),
    }
    return plain[hint][full]


if __name__ == "__main__":
    for line in write():
        print(line)
