"""The machine's result for a pickle, as the plain structure that an unpickler makes."""

from __future__ import annotations

import io
from typing import Any

from memboard.collector.format.snapshots.plain_text import plain_value
from memboard.tb_plugin.formats.snapshots import snapshot_file
from memboard.tb_plugin.formats.snapshots.pickles.machine import Machine
from memboard.tb_plugin.formats.snapshots.window import Window


def machine_of(data: bytes) -> Machine:
    return Machine(Window(io.BytesIO(data)))


def carried_out(data: bytes) -> tuple[Machine, Any]:
    window = Window(io.BytesIO(data))
    window.fill(0)
    return snapshot_file._carried_out(window)


def unpickled(data: bytes) -> Any:
    return filled(*carried_out(data))


def filled(machine: Machine, value: Any) -> Any:
    """The value with the lists of events that the machine holds as columns."""
    if isinstance(value, list):
        if id(value) in machine.spans:
            return [row(machine, at) for at in range(*machine.spans[id(value)])]
        return [filled(machine, entry) for entry in value]
    if isinstance(value, dict):
        return {key: filled(machine, entry) for key, entry in value.items()}
    return value


def row(machine: Machine, at: int) -> dict[str, Any]:
    texts = machine.events.text_list
    found = {}
    for key, column in machine.events.columns.items():
        span = [(at, at + 1)]
        first, *others = (next(part.rows(span)).tolist()[0] for part in column.parts)
        value: Any = first
        if value == column.gap or value != value:
            continue
        if column.kind == "uint":
            value %= 2**64
        elif column.kind == "pair":
            value = (value, *others)
        elif column.kind == "text":
            value = texts[value]
        elif column.kind == "stack":
            value = machine.stacks.frames_of(value)
        elif column.kind == "value":
            value = plain_value(texts[value])
        elif column.kind == "bool":
            value = bool(value)
        found[key] = value
    return found


def same(one: Any, other: Any) -> bool:
    """Equal, of the same types, and not a number where the other is none."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) or (one != one and other != other)
