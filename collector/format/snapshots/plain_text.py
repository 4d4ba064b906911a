"""Plain data as one line of text, and back, exactly.

JSON, where a list is a list and other containers are an object of one entry that says
what they are: `{"o": {...}}` a dict whose keys are texts, `{"d": [[key, value], ...]}` any
other dict, `{"t": [...]}` a tuple, `{"b": "hex"}` bytes, `{"i": "hex"}` an integer of more
than 64 bits. What is none of these has its repr kept, `{"r": "..."}`, and comes back as
that text.
"""

from __future__ import annotations

import json
from typing import Any, Final

from memboard.collector.format.errors import CorruptError

_MAX_REPR: Final = 1000
_WIDE: Final = 2**64


def plain_text(value: Any) -> str:
    """The text of a value; equal values of the same types have the same text."""
    return json.dumps(_marked(value), separators=(",", ":"))


def plain_value(text: str) -> Any:
    """The value of a text.

    Raises:
        CorruptError: no such value has this text.
    """
    try:
        return _unmarked(json.loads(text))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptError(f"a value does not decode: {error}") from error


def _marked(value: Any) -> Any:
    kind = type(value)
    if kind in (str, float, bool) or value is None:
        return value
    if kind is int:
        return value if -_WIDE < value < _WIDE else {"i": hex(value)}
    if kind is list:
        return [_marked(entry) for entry in value]
    if kind is tuple:
        return {"t": [_marked(entry) for entry in value]}
    if kind is dict:
        if all(type(key) is str for key in value):
            return {"o": {key: _marked(entry) for key, entry in value.items()}}
        return {"d": [[_marked(key), _marked(entry)] for key, entry in value.items()]}
    if kind is bytes:
        return {"b": value.hex()}
    return {"r": repr(value)[:_MAX_REPR]}


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "o":
        return {key: _unmarked(entry) for key, entry in inner.items()}
    if kind == "d":
        return {_unmarked(key): _unmarked(entry) for key, entry in inner}
    if kind == "t":
        return tuple(_unmarked(entry) for entry in inner)
    if kind == "b":
        return bytes.fromhex(inner)
    if kind == "i":
        return int(inner, 16)
    if kind == "r" and isinstance(inner, str):
        return inner
    raise ValueError(f"a value of kind {kind!r} is not known")
