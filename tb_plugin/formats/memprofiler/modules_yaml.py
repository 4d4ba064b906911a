"""`rank_R_fsdp_memory_stats.yaml`: module memory in exact bytes, many calls in one file.

What `memboard export --yaml` writes: by `rank.function.iteration` the peak and the
modules, of these the states, of these the calls, of these devices and labels, all as torch
names them. A file may be large, so the calls in it are found by their lines, which begin
where no other line does, and one is read when a page shows it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import yaml

from memboard.tb_plugin.analysis.modules.states import ALL_STATES
from memboard.tb_plugin.formats.memprofiler.names import (
    MAX_NAME,
    FunctionKey,
    split_phase,
)
from memboard.tb_plugin.formats.memprofiler.rows import WHOLE_WINDOW, Rows, state_of
from memboard.tb_plugin.formats.memprofiler.stats import (
    LeftOut,
    RefusedObject,
    UnreadableError,
    shown,
)
from memboard.tb_plugin.formats.memprofiler.yaml_events import Events, entries, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.formats.memprofiler.rows import Report

MAX_MODULES_BYTES: Final = 64 << 20
MAX_CALLS: Final = 20_000
_MAX_INT: Final = 1 << 62

_LINE: Final = re.compile(rb"^[^\s#][^\n]*", re.MULTILINE)
_KEY: Final = re.compile(r"(\d{1,7})\.(.+)\.(\d{1,12})", re.DOTALL)
_MARKS: Final = (b"---", b"...", b"%")
_PEAK: Final = ALL_STATES.index("window_peak")
_REMEDY: Final = "Write it again with memboard export: other files are not affected."


class Call(NamedTuple):
    """One call whose modules' memory the file has, and where."""

    function: FunctionKey
    iteration: int
    start: int
    stop: int
    line: int
    """Its first one, from 1."""


class Calls(NamedTuple):
    """The calls of a file, in its order, and what stands in it besides."""

    calls: tuple[Call, ...]
    left_out: LeftOut


def find_calls(data: bytes, rank: int) -> Calls:
    """The calls of a file of that rank, by the lines that begin them.

    Raises:
        UnreadableError: there are none.
    """
    calls: list[Call] = []
    left_out = LeftOut()
    heads = [match for match in _LINE.finditer(data) if _is_head(match[0])]
    ends = [*(match.start() for match in heads[1:]), len(data)]
    line = position = 0
    for match, stop in zip(heads, ends, strict=False):
        line += data.count(b"\n", position, match.start())
        position = match.start()
        key = _key_of(match[0])
        parts = None if key is None else _KEY.fullmatch(key)
        if parts is None:
            left_out.add(f"line {line + 1} names no rank.function.iteration")
        elif int(parts[1]) != rank:
            left_out.add(f"line {line + 1} is of another rank than the file's name")
        elif len(calls) >= MAX_CALLS:
            left_out.add(f"line {line + 1}: more than {MAX_CALLS:,} calls")
        else:
            function = split_phase(parts[2])
            calls.append(Call(function, int(parts[3]), position, stop, line + 1))
    if not calls:
        sentence = f"No call of rank {rank} stands in the file{left_out.first}."
        raise UnreadableError(sentence, "", _REMEDY)
    return Calls(tuple(calls), left_out)


def read_call(data: bytes, call: Call) -> Report:
    """The memory by module of one call.

    Where the file breaks off, what stands before is kept, and the report `is_cut`.

    Raises:
        UnreadableError: nothing of it can be used.
    """
    rows = Rows()
    rows.where = f"the call at line {call.line}"
    events = Events(data[call.start : call.stop])
    is_cut = False
    try:
        _read(events, rows)
    except UnreadableError:
        is_cut = True
    return rows.report(is_cut=is_cut, remedy=_REMEDY)


def _is_head(line: bytes) -> bool:
    return not line.startswith(_MARKS)


def _key_of(line: bytes) -> str | None:
    """The key of the mapping's entry that begins on this line."""
    if len(line) > 2 * MAX_NAME:
        return None
    try:
        events = Events(line)
        _skip_to_mapping(events)
        key = events.take()
    except UnreadableError:
        return None
    return key.value if isinstance(key, yaml.ScalarEvent) else None


def _skip_to_mapping(events: Events) -> None:
    event = events.take()
    while isinstance(event, (yaml.StreamStartEvent, yaml.DocumentStartEvent)):
        event = events.take()
    if not isinstance(event, yaml.MappingStartEvent):
        raise UnreadableError("The file is not a mapping of calls.", "", _REMEDY)


def _read(events: Events, rows: Rows) -> None:
    _skip_to_mapping(events)
    for _, call in entries(events):
        for key, event in _mapping(events, call, rows):
            if key == "peak":
                _read_devices(events, event, rows, WHOLE_WINDOW, _PEAK, 0)
            elif key == "modules":
                for fqn, module in _mapping(events, event, rows):
                    _read_module(events, fqn, module, rows)
            else:
                events.skip(event)


def _read_module(events: Events, fqn: object, event: yaml.Event, rows: Rows) -> None:
    place = rows.module(fqn if isinstance(fqn, str) else "")
    for state_name, calls in _mapping(events, event, rows):
        state = state_of(state_name) if isinstance(state_name, str) else None
        if place is None or state is None:
            rows.leave_out(f"{shown(state_name)} is not a state of a module")
            events.skip(calls)
            continue
        for number, devices in enumerate(_sequence(events, calls, rows)):
            index = ALL_STATES.index(state)
            _read_devices(events, devices, rows, place, index, number)


def _read_devices(
    events: Events, event: yaml.Event, rows: Rows, module: int, state: int, call: int
) -> None:
    for device, sizes in _mapping(events, event, rows):
        row = rows.begin(module, state, call, str(device)) if device else None
        for label, size in _mapping(events, sizes, rows):
            value = value_of(size)
            events.skip(size)
            if not isinstance(label, str):
                rows.leave_out("a size has no label")
            elif type(value) is not int or abs(value) > _MAX_INT:
                rows.leave_out(f"{shown(label)}: {shown(value)} is not a size")
            elif row is not None:
                rows.put(row, label, value)


def _mapping(
    events: Events, event: yaml.Event, rows: Rows
) -> Iterator[tuple[object, yaml.Event]]:
    """A mapping's entries; nothing where the event begins none."""
    if isinstance(event, yaml.MappingStartEvent) and not event.tag:
        yield from entries(events)
    else:
        _leave_out(events, event, rows, "mapping")


def _sequence(events: Events, event: yaml.Event, rows: Rows) -> Iterator[yaml.Event]:
    if isinstance(event, yaml.SequenceStartEvent) and not event.tag:
        while not isinstance(event := events.take(), yaml.SequenceEndEvent):
            yield event
    else:
        _leave_out(events, event, rows, "list")


def _leave_out(events: Events, event: yaml.Event, rows: Rows, expected: str) -> None:
    tag = getattr(event, "tag", None)
    instead = shown(RefusedObject(str(tag))) if tag else shown(value_of(event))
    rows.leave_out(f"{instead} stands where a {expected} was expected")
    events.skip(event)
