"""The module whose forward a stack was in, by the lines of its frames alone.

A frame names a function and a line, but no class, and the source may not be at hand. So
this is a rule: lines of functions `forward` in one file are of one module where they

- were called from the same lines (what runs one line of a `forward` runs the others),
- follow each other among all lines of that file that occur in any frame, and
- lie at most `MAX_GAP` lines apart.

torch's own modules are told by their file, each of which holds one family. What backward
and optimizers allocate has no frame of a `forward`: that is of no module.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, picked
from memboard.tb_plugin.analysis.categories.frames import LIBRARY, TORCH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.snapshots.snapshot import Stacks


_FORWARD: Final = "forward"
_TORCH_MODULE: Final = re.compile(r"[/\\]nn[/\\]modules[/\\](\w+)\.py$")

MAX_GAP: Final = 12
"""Between two classes there is more, or an `__init__` that occurs."""


@dataclass(frozen=True, slots=True)
class ForwardModules:
    """The modules that stacks were in."""

    of_stack: Ints
    """(stacks,): row of `labels`; NOTHING: in no module's forward."""
    labels: tuple[str, ...]
    """`model.py:31-40 forward`, or `torch.nn linear`."""


def forward_modules(stacks: Stacks) -> ForwardModules:
    """The innermost module of each stack; the user's own and libraries' before torch's."""
    if not len(stacks) or not len(stacks.frame):
        return ForwardModules(np.full(len(stacks), NOTHING), ())
    kinds = stacks.kinds
    is_forward = np.array([text == _FORWARD for text in stacks.name], np.bool_)
    families = [_TORCH_MODULE.search(text) for text in stacks.filename]
    is_family = np.array([family is not None for family in families], np.bool_)
    own_forward = (is_forward & (kinds <= LIBRARY))[stacks.frame]
    own = picked(stacks.frame, stacks.first(own_forward))
    in_family = (is_forward & (kinds == TORCH) & is_family)[stacks.frame]
    of_torch = picked(stacks.frame, stacks.first(in_family))
    caller = _callers(stacks, (kinds <= LIBRARY)[stacks.frame], own)
    numbers: dict[str, int] = {}
    of_stack = np.full(len(stacks), NOTHING)
    families_of = {
        frame: f"torch.nn {family.group(1)}"
        for frame, family in enumerate(families)
        if family is not None
    }
    together = _together(stacks, own, caller)
    for stack in np.flatnonzero((own != NOTHING) | (of_torch != NOTHING)).tolist():
        if own[stack] != NOTHING:
            label = together[int(own[stack])]
        else:
            label = families_of[int(of_torch[stack])]
        of_stack[stack] = numbers.setdefault(label, len(numbers))
    return ForwardModules(of_stack, tuple(numbers))


def _callers(stacks: Stacks, is_code: Flags, own: Ints) -> Ints:
    """By stack: the frame that called its module, past torch's; NOTHING: none."""
    rows = stacks.first(stacks.frame == own[stacks.owner])
    outer = stacks.first(is_code, rows + 1)
    return np.where(rows < 0, NOTHING, picked(stacks.frame, outer))


def _together(stacks: Stacks, own: Ints, caller: Ints) -> dict[int, str]:
    """By frame of a forward: the label of all lines that belong to it."""
    callers: dict[tuple[str, int], set[int]] = {}
    frames: dict[int, tuple[str, int]] = {}
    for frame, site in {*zip(own.tolist(), caller.tolist(), strict=True)}:
        if frame != NOTHING:
            place = frames[frame] = (stacks.filename[frame], int(stacks.line[frame]))
            callers.setdefault(place, set()).add(site)
    files = {name for name, _ in callers}
    places = sorted(
        {
            (name, line)
            for name, line in zip(stacks.filename, stacks.line.tolist(), strict=True)
            if name in files
        }
    )
    labels: dict[tuple[str, int], str] = {}
    lines: list[tuple[str, int]] = []
    for place in places:
        of = callers.get(place)
        if lines and (
            of != callers[lines[-1]]
            or place[0] != lines[-1][0]
            or place[1] - lines[-1][1] > MAX_GAP
        ):
            labels.update(dict.fromkeys(lines, _label(lines)))
            lines = []
        if of is not None:
            lines.append(place)
    labels.update(dict.fromkeys(lines, _label(lines)))
    return {frame: labels[place] for frame, place in frames.items()}


def _label(lines: Sequence[tuple[str, int]]) -> str:
    if not lines:
        return ""
    short = re.split(r"[/\\]", lines[0][0])[-1]
    first, last = lines[0][1], lines[-1][1]
    span = str(first) if first == last else f"{first}-{last}"
    return f"{short}:{span} {_FORWARD}"
