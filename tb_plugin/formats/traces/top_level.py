"""Facts that a trace states of itself, and reasons why it is empty."""

from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING, Any, Final

from memboard.tb_plugin.analysis.findings.text import joined
from memboard.tb_plugin.formats.traces.bytes.pieces import MAX_LEVELS, repairs
from memboard.tb_plugin.formats.traces.bytes.refused import EVENTS_REMEDY
from memboard.tb_plugin.formats.traces.columns.details import clean
from memboard.tb_plugin.formats.traces.columns.events import plain
from memboard.tb_plugin.worker.errors import RefusedError

if TYPE_CHECKING:
    from memboard.tb_plugin.formats.traces.bytes.chunks import TraceEnvelope
    from memboard.tb_plugin.formats.traces.bytes.pieces import Fault
    from memboard.tb_plugin.formats.traces.columns.gathering import Gathering


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
_FOLLOWS: Final = "The part after its events is not valid JSON; it is not shown."


def top_level(around: TraceEnvelope) -> tuple[dict[str, Any], str]:
    """All of it as plain JSON data, and what of it cannot be read, in words."""
    if around.is_list:
        return {}, _FOLLOWS if around.tail.strip(_BLANK) else ""
    before = around.head + b"[]}"
    whole = around.head + b"[]" + around.tail.rstrip(_BLANK)
    texts = ((whole, ""),) if around.ended else ()
    told = "The part before its events is not valid JSON; it is not shown."
    for text, problem in (*texts, (before, _FOLLOWS if around.ended else "")):
        for attempt in (text, *repairs(text)):
            value = plain(attempt)
            if isinstance(value, dict):
                top = {key: value[key] for key in value if key != "traceEvents"}
                return top, problem
    return {}, told


def facts_of(top: dict[str, Any]) -> dict[str, Any]:
    """What `trace.TraceFacts` holds, but for the resolution; plain JSON data."""
    distributed = _distributed(top.get("distributedInfo"))
    devices = top.get("deviceProperties")
    devices = devices if isinstance(devices, list) else []
    known_keys = {
        "distributedInfo",
        "deviceProperties",
        "schemaVersion",
        _BASE,
        *_FLAGS,
    }
    others = {
        clean(str(key))[:_MAX_TEXT]: _cut(value)
        for key, value in list(top.items())[:_MAX_KEYS]
        if key not in known_keys
    }
    return {
        "rank": whole_number(distributed.get("rank")),
        "world_size": whole_number(distributed.get("world_size")),
        "base_time_ns": base_of(top) or 0,
        "host_name": _text(top.get("host_name")),
        "trace_id": _text(top.get("trace_id")),
        "backend": _text(distributed.get("backend")),
        "devices": [
            device for device in devices[:_MAX_DEVICES] if isinstance(device, dict)
        ],
        # Groups of many ranks take megabytes; what else is said must not go with them.
        "distributed": {
            clean(key)[:_MAX_TEXT]: _cut(value)
            for key, value in list(distributed.items())[:_MAX_KEYS]
        },
        "flags": {flag: bool(top[flag]) for flag in _FLAGS if flag in top},
        "metadata": others,
    }


def base_of(top: dict[str, Any]) -> int | None:
    """`baseTimeNanoseconds`; None where there is none."""
    base = whole_number(top.get(_BASE))
    return base if 0 <= base < _MOST_NS else None


def rank_of(top: dict[str, Any]) -> int | None:
    """`distributedInfo.rank`; None where there is none."""
    rank = whole_number(_distributed(top.get("distributedInfo")).get("rank"))
    return None if rank < 0 else rank


def _distributed(info: Any) -> dict[str, Any]:
    """`distributedInfo`, with lists that on-demand traces write as text."""
    if isinstance(info, str):
        info = _parsed(info)
    if not isinstance(info, dict):
        return {}
    fields: dict[str, Any] = {str(key): value for key, value in info.items()}
    groups = fields.get("pg_config")
    groups = _parsed(groups) if isinstance(groups, str) else groups
    if isinstance(groups, list):
        fields["pg_config"] = [
            {**group, "ranks": _parsed(group.get("ranks"))}
            if isinstance(group, dict) and isinstance(group.get("ranks"), str)
            else group
            for group in groups
        ]
    return fields


def _parsed(text: Any) -> Any:
    """A list or object from JSON or Python text; the text where it is neither."""
    value = plain(text.encode(errors="replace")) if isinstance(text, str) else None
    if value is not None:
        return value
    try:
        value = ast.literal_eval(text) if len(text) < _MAX_VALUE else text
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return text
    return value


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


_COPY: Final = "Copy the file again, or record the trace again, whole."

_NOUNS: Final[dict[Fault, str]] = {
    "unreadable": "objects that cannot be read",
    "deep": f"values nested deeper than {MAX_LEVELS} levels",
    "list": "lists",
    "text": "texts",
    "number": "numbers or null",
}


def refuse_no_events(around: TraceEnvelope, gathered: Gathering) -> None:
    """Refuse a file whose list has entries, but not one event.

    Raises:
        RefusedError: it is one.
    """
    has_phases = any(not key.startswith("|") for key in gathered.num_events)
    if has_phases or not (around.bad or gathered.num_events):
        return
    first = min((bad_events.offset for bad_events in around.bad.values()), default=0)
    if around.cut_off and around.num_bad == 1 and not gathered.num_events:
        sentence = "The file ends inside its first event: it is incomplete."
        raise RefusedError(sentence, first, remedy=_COPY)
    nouns = [_NOUNS[fault] for fault in around.bad]
    if gathered.num_events:
        nouns.append("objects without a phase (`ph`)")
    where = "list" if around.is_list else "`traceEvents`"
    sentence = f"This trace's {where} holds no events but {joined(nouns)}."
    raise RefusedError(sentence, first, remedy=EVENTS_REMEDY)


def note_problems(around: TraceEnvelope, gathered: Gathering, told: str) -> None:
    """Say what of a trace is not shown; `told`: what is wrong around its events."""
    problems = gathered.problems
    nothing = _why_nothing(around, gathered)
    if nothing:
        problems.note(nothing, max(1, sum(gathered.num_events.values())))
    for fault, bad in around.bad.items():
        sentence = "events that could not be read are not shown"
        if fault != "unreadable":
            sentence = f"{_NOUNS[fault]} among the events are not shown"
        problems.note(sentence, bad.count, f"event {bad.number}, byte {bad.offset}")
    if around.num_lists > 1:
        sentence = (
            f"The file has {around.num_lists} lists of events; all of them are shown."
            " Other viewers show the last one, or none."
        )
        problems.note(sentence, 1)
    if told:
        problems.note(told, 1)


def _why_nothing(around: TraceEnvelope, gathered: Gathering) -> str:
    """Why a trace is empty; empty where it is not."""
    tables = (gathered.slices, gathered.edges, gathered.instants, gathered.memory)
    if gathered.points or any(len(table) for table in tables):
        return ""
    if not gathered.num_events and not around.ended:
        return "This trace is empty: the file ends before its first whole event."
    if not gathered.num_events:
        return "This trace is empty: its list of events has no entry."
    if all(key.startswith("M|") for key in gathered.num_events):
        return "This trace is empty: its events only name processes and threads."
    return (
        "This trace is empty: none of its events has a time and a phase that is shown."
    )
