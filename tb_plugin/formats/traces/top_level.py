"""What a trace says of itself beside its events."""

from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING, Any, Final

from tb_plugin.formats.traces.bytes.pieces import repairs
from tb_plugin.formats.traces.details import clean
from tb_plugin.formats.traces.events import plain

if TYPE_CHECKING:
    from tb_plugin.formats.traces.bytes.chunks import Around

_FLAGS: Final = (
    "with_stack",
    "profile_memory",
    "record_shapes",
    "with_modules",
    "with_flops",
)
_MAX_DEVICES: Final = 1024
_MAX_KEYS: Final = 256
_MAX_VALUE: Final = 1 << 16
_MAX_TEXT: Final = 1024
_BASE: Final = "baseTimeNanoseconds"
_MOST_NS: Final = 2**62
_BLANK: Final = b" \t\r\n\0"
_FOLLOWS: Final = "What follows its events cannot be read as JSON; it is not shown."


def top_level(around: Around) -> tuple[dict[str, Any], str]:
    """All of it as plain JSON data, and what of it cannot be read, in words."""
    if around.is_list:
        return {}, _FOLLOWS if around.tail.strip(_BLANK) else ""
    before = around.head + b"[]}"
    whole = around.head + b"[]" + around.tail.rstrip(_BLANK)
    texts = ((whole, ""),) if around.ended else ()
    told = "What stands before its events cannot be read as JSON; it is not shown."
    for text, problem in (*texts, (before, _FOLLOWS if around.ended else "")):
        for attempt in (text, *repairs(text)):
            found = plain(attempt)
            if isinstance(found, dict):
                top = {key: found[key] for key in found if key != "traceEvents"}
                return top, problem
    return {}, told


def facts_of(top: dict[str, Any]) -> dict[str, Any]:
    """What `trace.TraceFacts` holds, but for the resolution; plain JSON data."""
    distributed = _distributed(top.get("distributedInfo"))
    devices = top.get("deviceProperties")
    devices = devices if isinstance(devices, list) else []
    known = {"distributedInfo", "deviceProperties", "schemaVersion", _BASE, *_FLAGS}
    others = {
        clean(str(key))[:_MAX_TEXT]: _cut(value)
        for key, value in list(top.items())[:_MAX_KEYS]
        if key not in known
    }
    return {
        "rank": whole_number(distributed.get("rank")),
        "world_size": whole_number(distributed.get("world_size")),
        "base_time_ns": base_of(top) or 0,
        "host_name": _text(top.get("host_name")),
        "trace_id": _text(top.get("trace_id")),
        "backend": _text(distributed.get("backend")),
        "devices": [one for one in devices[:_MAX_DEVICES] if isinstance(one, dict)],
        "distributed": _cut(distributed),
        "flags": {name: bool(top[name]) for name in _FLAGS if name in top},
        "metadata": others,
    }


def base_of(top: dict[str, Any]) -> int | None:
    """`baseTimeNanoseconds`; None where there is none."""
    base = whole_number(top.get(_BASE))
    return base if 0 <= base < _MOST_NS else None


def _distributed(info: Any) -> dict[str, Any]:
    """`distributedInfo`, with lists that on-demand traces write as text."""
    if isinstance(info, str):
        info = _parsed(info)
    if not isinstance(info, dict):
        return {}
    found: dict[str, Any] = {str(key): value for key, value in info.items()}
    groups = found.get("pg_config")
    groups = _parsed(groups) if isinstance(groups, str) else groups
    if isinstance(groups, list):
        found["pg_config"] = [
            {**one, "ranks": _parsed(one.get("ranks"))}
            if isinstance(one, dict) and isinstance(one.get("ranks"), str)
            else one
            for one in groups
        ]
    return found


def _parsed(text: Any) -> Any:
    """A list or object from JSON or Python text; the text where it is neither."""
    found = plain(text.encode(errors="replace")) if isinstance(text, str) else None
    if found is not None:
        return found
    try:
        found = ast.literal_eval(text) if len(text) < _MAX_VALUE else text
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return text
    return found


def whole_number(value: Any) -> int:
    """A whole number of at most 63 bits, not negative; -1 for anything else."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return -1
    return number if 0 <= number < _MOST_NS else -1


def _text(value: Any) -> str:
    return clean(value)[:_MAX_TEXT] if isinstance(value, str) else ""


def _cut(value: Any) -> Any:
    """The value, or the start of its text where it is long."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return ""
    return value if len(text) <= _MAX_VALUE else text[:_MAX_VALUE]
