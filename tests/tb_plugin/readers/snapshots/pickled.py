"""What the machine made of a pickle, as the plain structure that an unpickler makes."""

from __future__ import annotations

from typing import Any

from collector.format.numeric import ABSENT
from collector.format.snapshots.plain_text import plain_value
from tb_plugin.readers.snapshots.machine import Machine


def unpickled(data: bytes) -> Any:
    machine = Machine(data)
    root = machine.run()
    machine.events.pad()
    return filled(machine, root)


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
    texts = list(machine.events.texts)
    found = {}
    for key, column in machine.events.columns.items():
        value = column.values[at]
        if column.kind in ("int", "uint", "pair"):
            if value == ABSENT:
                continue
            if column.kind == "uint":
                value %= 2**64
            elif column.kind == "pair":
                value = (value, column.second[at])
        elif column.kind == "float":
            if value != value:
                continue
        elif value == -1:
            continue
        elif column.kind == "text":
            value = texts[value]
        elif column.kind == "stack":
            value = machine.stacks.lists[value]
        elif column.kind == "value":
            value = plain_value(texts[value])
        else:
            value = bool(value)
        found[key] = value
    return found
