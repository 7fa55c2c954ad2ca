"""The Avro schema of an event type, and the conversions between its values and Avro records.

Type mapping: str string, int long, float double, bool boolean, bytes bytes, ``X | None`` a union with null first,
``tuple[X, ...]`` array, ``dict[str, X]`` map, a dataclass a record. `Envelope.occurred_at` is a timestamp-micros.
"""

import types
from collections.abc import Callable, Collection
from dataclasses import fields, is_dataclass, make_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

NAMESPACE = "rods.events"
_PRIMITIVES: dict[Any, str] = {str: "string", int: "long", float: "double", bool: "boolean", bytes: "bytes"}

Convert = Callable[[Any], Any]


def avro_schema(event_type: type[Any], version: int = 1) -> dict[str, Any]:
    """The record schema of a dataclass, with its version as an attribute. A nested record is written once."""
    schema: dict[str, Any] = _record(event_type, set())
    return {**schema, "version": version}


def _record(record_type: type[Any], seen: set[str]) -> Any:
    name = record_type.__name__
    if name in seen:
        return f"{NAMESPACE}.{name}"
    seen.add(name)
    hints = get_type_hints(record_type)
    schema_fields = [_field(field.name, hints[field.name], seen) for field in fields(record_type)]
    return {"type": "record", "name": name, "namespace": NAMESPACE, "fields": schema_fields}


def _field(name: str, hint: Any, seen: set[str]) -> dict[str, Any]:
    if name == "occurred_at":
        return {"name": name, "type": {"type": "long", "logicalType": "timestamp-micros"}}
    schema = _type(hint, seen)
    if isinstance(schema, list):
        return {"name": name, "type": schema, "default": None}
    return {"name": name, "type": schema}


def _type(hint: Any, seen: set[str]) -> Any:
    if hint in _PRIMITIVES:
        return _PRIMITIVES[hint]
    if is_dataclass(hint) and isinstance(hint, type):
        return _record(hint, seen)
    optional = _optional(hint)
    if optional is not None:
        return ["null", _type(optional, seen)]
    origin, args = get_origin(hint), get_args(hint)
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        return {"type": "array", "items": _type(args[0], seen)}
    if origin is dict and args[0] is str:
        return {"type": "map", "values": _type(args[1], seen)}
    raise TypeError(f"no Avro type for {hint!r}")


def _optional(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        inner = [arg for arg in get_args(hint) if arg is not type(None)]
        if len(inner) == 1 and len(get_args(hint)) == 2:
            return inner[0]
    return None


def encoder(record_type: type[Any], names: Collection[str] | None = None) -> Convert:
    """A function from an instance to the plain dict that fastavro writes; maps in the order of their keys. names: of
    the fields it takes; None: all."""
    hints = get_type_hints(record_type)
    taken = [field.name for field in fields(record_type) if names is None or field.name in names]
    converts = [(name, _convert(hints[name], encoder, mapping=_in_order)) for name in taken]
    plain = [name for name, convert in converts if convert is None]
    rich = [(name, convert) for name, convert in converts if convert is not None]

    def encode(value: Any) -> dict[str, Any]:
        record = {name: getattr(value, name) for name in plain}
        for name, convert in rich:
            record[name] = convert(getattr(value, name))
        return record

    return encode


def field_decoders(record_type: type[Any]) -> dict[str, Convert]:
    """Functions from what fastavro reads of a field to its value, for the fields that are not taken as they are."""
    hints = get_type_hints(record_type)
    converts = [(field.name, _convert(hints[field.name], decoder, tuple)) for field in fields(record_type)]
    return {name: convert for name, convert in converts if convert is not None}


def decoder(record_type: type[Any]) -> Convert:
    """A function from the dict that fastavro reads, which it may change, to an instance."""
    rich = list(field_decoders(record_type).items())
    make = _mutable(record_type)

    def decode(record: dict[str, Any]) -> Any:
        for name, convert in rich:
            record[name] = convert(record[name])
        value = make(**record)
        if make is not record_type:
            value.__class__ = record_type
        return value

    return decode


def _mutable(record_type: type[Any]) -> Any:
    """A class whose instances become ones of a frozen type by a change of class, for a third of the time.

    The constructor of a frozen dataclass goes through ``object.__setattr__`` for each field; this class has the same
    slots and is not frozen. A type without slots, or with more to do than to hold its fields, is returned as it is.
    """
    names = [field.name for field in fields(record_type)]
    if list(getattr(record_type, "__slots__", ())) != names or hasattr(record_type, "__post_init__"):
        return record_type
    return make_dataclass(f"_{record_type.__name__}", names, slots=True, eq=False, repr=False)


def _in_order(value: dict[str, Any]) -> dict[str, Any]:
    return dict(sorted(value.items()))


def _convert(
    hint: Any,
    build: Callable[[type[Any]], Convert],
    sequence: Convert | None = None,
    mapping: Convert | None = None,
) -> Convert | None:
    """How a value of this type is converted; None where it passes as it is. sequence, mapping: for those of plain
    values."""
    if is_dataclass(hint) and isinstance(hint, type):
        return build(hint)
    optional = _optional(hint)
    if optional is not None:
        inner = _convert(optional, build, sequence, mapping)
        return None if inner is None else lambda value: None if value is None else inner(value)
    if get_origin(hint) is tuple:
        item = _convert(get_args(hint)[0], build, sequence, mapping)
        if item is None:
            return sequence
        return lambda values: tuple(map(item, values))
    if get_origin(hint) is dict:
        if get_args(hint)[1] not in _PRIMITIVES:
            raise TypeError(f"maps hold plain values only, not {hint!r}")
        return mapping
    return None
