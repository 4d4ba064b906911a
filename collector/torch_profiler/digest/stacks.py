"""Stacks in the folded form that flame graph tools read: `a;b;c 123`, one per line.

Made from the events themselves: Python's calls and operators, by what is inside what.
(torch's own `export_stacks` writes an empty file unless its events carry stacks, which
they do not by default.)
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from memboard.collector.torch_profiler.digest.events import ASYNC, CPU, MEMORY
from memboard.collector.torch_profiler.digest.nesting import nested
from memboard.collector.torch_profiler.digest.operators import device_ns_by_launch

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.collector.torch_profiler.digest.events import Events
    from memboard.collector.torch_profiler.digest.nesting import Nesting

MAX_STACKS: Final = 100_000
"""Different ones; what would be another one counts for the stack around it."""

_MAX_NAME: Final = 300
_PORTION: Final = 5000
_PAUSE_SECONDS: Final = 0.003


def has_stacks(events: Events) -> bool:
    """Whether this torch gives Python's calls as events."""
    return "python_function" in events.categories


def folded_stacks(
    events: Events,
    metric: Literal["self_cpu", "self_device"],
    pause: Callable[[float], None] = time.sleep,
) -> str:
    """Each stack with its own time in microseconds, those without any left out."""
    on_host = (events.device_type == CPU) & ~events.named(MEMORY)
    on_host &= events.thread != ASYNC
    nesting = nested(events, np.flatnonzero(on_host))
    if metric == "self_device":
        own = device_ns_by_launch(events, nesting)
    else:
        whole = np.maximum(events.duration_ns[nesting.rows], 0).astype(np.float64)
        own = nesting.without_inner(whole)
    stack, parents, names = _stacks(events, nesting, pause)
    weights = np.bincount(np.array(stack, np.int64), own, minlength=len(names))
    lines = []
    for bottom, weight in enumerate(weights):
        if round(weight / 1000) > 0:
            path, at = [], bottom
            while at >= 0:
                path.append(_plain(events.names[names[at]]))
                at = parents[at]
            lines.append(f"{';'.join(reversed(path))} {round(weight / 1000)}\n")
    return "".join(lines)


def _stacks(
    events: Events, nesting: Nesting, pause: Callable[[float], None]
) -> tuple[list[int], list[int], list[int]]:
    """Each event's stack; and of each stack the one around it, and its last name."""
    known: dict[tuple[int, int], int] = {}
    stack: list[int] = []
    parents: list[int] = []
    last: list[int] = []
    names = events.name[nesting.rows].tolist()
    for at, (parent, name) in enumerate(
        zip(nesting.parent.tolist(), names, strict=True)
    ):
        around = stack[parent] if parent >= 0 else -1
        found = known.get((around, name))
        if found is None:
            if len(known) >= MAX_STACKS and around >= 0:
                stack.append(around)
                continue
            found = known[around, name] = len(known)
            parents.append(around)
            last.append(name)
        stack.append(found)
        if at % _PORTION == 0:
            pause(_PAUSE_SECONDS)
    return stack, parents, last


def _plain(name: str) -> str:
    return " ".join(name.replace(";", ":").split())[:_MAX_NAME] or "?"
