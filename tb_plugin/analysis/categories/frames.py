"""Frames: whose they are, what they are called in short, and paths for flamegraphs.

A stack has frames of Python and of C++, innermost first. Its *user frame* is the line to
look at: the innermost frame of the user's own, else the innermost of any library but
torch, else the innermost of Python's. A frame is

- **native**: its file is not Python's (C++ frames name `??`, nothing, or a source file);
- **torch**: its file lies in a package `torch` of an installation, or in one of torch's
  own subpackages anywhere (so that a torch built from source counts), or inductor
  wrote it;
- **library**: its file lies in `site-packages` or `dist-packages`, is the standard
  library's (under `lib/pythonX.Y`, in a zipped one, or frozen into the interpreter) or
  the debugger's;
- the **user's** otherwise: also a cell of a notebook, or what was given to `exec`.

MemBoard's own frames are in no stack: see `without_own`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.own.frames import RECORDER, role_of
from memboard.tb_plugin.analysis.arrays import NOTHING, picked

if TYPE_CHECKING:
    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.snapshots.snapshot import Stacks


KINDS: Final = ("user", "library", "torch", "native")
"""Whose a frame is; a kind is its index here, the more interesting the lower."""

USER: Final = 0
LIBRARY: Final = 1
TORCH: Final = 2
NATIVE: Final = 3

NO_STACK: Final = "no stack recorded"

_PYTHON_FILE: Final = re.compile(r"\.py[wx]?$|^<[^>]*>$|ipykernel_")
_STANDARD: Final = re.compile(
    r"[/\\]lib(64)?[/\\]python\d[\d.]*[/\\]"  # Unix
    r"|[/\\]c?python[-\w.]*[/\\]lib[/\\]"  # Windows
    r"|python\d+\.zip|^<frozen",
    re.IGNORECASE,
)
_INSTALLED: Final = re.compile(r"[/\\](site|dist)-packages[/\\]|[/\\]debugpy[/\\]")
_TORCH: Final = re.compile(
    r"[/\\](site|dist)-packages[/\\]torch[/\\]"
    r"|[/\\]torchinductor_[^/\\]*[/\\]"
    r"|[/\\]torch[/\\](nn|optim|autograd|cuda|distributed|utils|fx|amp|_dynamo|_inductor"
    r"|_functorch|_ops\.py|_tensor\.py|functional\.py)([/\\]|$)"
)

_ARGUMENTS: Final = re.compile(r"\(.*$", re.DOTALL)
_OPERATOR: Final = re.compile(r"^at::_ops::(\w+?)(?:_\w+)?::(?:call|redispatch)")
_NODE: Final = re.compile(
    r"(?:^|::)(\w+Backward\w*|AccumulateGrad)::(?:apply|release_variables)"
)
_ENGINE: Final = re.compile(r"^(torch::autograd::Engine)::")


def frame_kinds(stacks: Stacks) -> npt.NDArray[np.int8]:
    """By frame: whose it is, an index in `KINDS`."""
    kind_by_filename: dict[str, int] = {}
    kinds = np.empty(len(stacks.filename), np.int8)
    for row, filename in enumerate(stacks.filename):
        if filename not in kind_by_filename:
            kind_by_filename[filename] = kind_of(filename)
        kinds[row] = kind_by_filename[filename]
    return kinds


def kind_of(filename: str) -> int:
    """Whose a frame of this file is: see the module."""
    if not _PYTHON_FILE.search(filename):
        return NATIVE
    if _TORCH.search(filename):
        return TORCH
    is_library = _STANDARD.search(filename) or _INSTALLED.search(filename)
    return LIBRARY if is_library else USER


_MODE: Final = "__torch_dispatch__"
_CALLS_MODE: Final = re.compile(
    r"torch[/\\](?:_ops\.py __call__|_dynamo[/\\]eval_frame\.py _fn|_compile\.py inner)$"
)

_PASSES, _WORKS, _STARTS = 1, 2, 3
_ROLES: Final = {"": 0, "passes": _PASSES, "works": _WORKS, "starts": _STARTS}


def without_own(stacks: Stacks) -> Stacks:
    """The stacks without MemBoard's frames, each in its place.

    One of the recorder's own work has a frame by that name: its memory is a row of its own.
    One in which nothing else is, as on autograd's threads, is empty, as without MemBoard.
    """
    roles = {filename: _ROLES[role_of(filename)] for filename in set(stacks.filename)}
    if not any(roles.values()):
        return stacks
    role = np.array([roles[filename] for filename in stacks.filename], np.int8)[
        stacks.frame
    ]
    owner, begins = stacks.owner, stacks.start[:-1]
    num_started = np.append(0, np.cumsum(role == _STARTS))
    has_started = num_started[1:] > num_started[begins][owner]
    is_kept = (role == 0) & ~has_started
    is_kept[_around_dispatch(stacks, role)] = False
    innermost = stacks.first(frame_kinds(stacks)[stacks.frame] != NATIVE)
    lengths = np.bincount(owner[is_kept], minlength=len(stacks))
    is_ours = picked(role, innermost, 0) == _WORKS
    is_kept &= ~is_ours[owner]
    lengths[is_ours] = 1
    start = np.append(0, np.cumsum(lengths))
    if not is_ours.any():
        return replace(stacks, start=start, frame=stacks.frame[is_kept])
    frame = np.full(int(start[-1]), len(stacks.name))
    frame[~np.repeat(is_ours, lengths)] = stacks.frame[is_kept]
    return replace(
        stacks,
        name=(*stacks.name, RECORDER),
        filename=(*stacks.filename, ""),
        line=np.append(stacks.line, 0),
        start=start,
        frame=frame,
    )


def _around_dispatch(stacks: Stacks, role: npt.NDArray[np.int8]) -> Ints:
    """Places of torch's frames that call our dispatch mode, and that it calls.

    They are in a stack for our mode alone: on autograd's threads there is nothing else.
    """
    names = zip(stacks.name, stacks.filename, strict=True)
    calls = np.array(
        [bool(_CALLS_MODE.search(f"{file} {function}")) for function, file in names]
    )
    is_mode = np.array([function == _MODE for function in stacks.name], np.bool_)
    rows = np.flatnonzero((role == _PASSES) & is_mode[stacks.frame])
    places = []
    for step in (-1, 1, 2):
        place = rows + step
        is_there = (place >= 0) & (place < len(stacks.frame))
        place, own = place[is_there], stacks.owner[rows[is_there]]
        is_called = calls[stacks.frame[place]] & (stacks.owner[place] == own)
        places.append(place[is_called])
    return np.concatenate(places)


def user_frames(stacks: Stacks) -> Ints:
    """By stack: its user frame; NOTHING where it has no frame of Python's."""
    frames = np.full(len(stacks), NOTHING)
    for kind in (TORCH, LIBRARY, USER):
        place = stacks.first(stacks.kinds[stacks.frame] == kind)
        frames = np.where(place < 0, frames, picked(stacks.frame, place))
    return frames


def stacks_by_line(stacks: Stacks) -> Ints:
    """By stack: the first one whose line is the same; without a line it is itself."""
    user_frame = stacks.user_frame
    _, first, line = np.unique(user_frame, return_index=True, return_inverse=True)
    own = np.arange(len(user_frame))
    return np.where(user_frame == NOTHING, own, first[line.reshape(-1)])


def frame_label(function: str, filename: str, line: int) -> str:
    """A frame in short: `models.py:121 forward`; of C++ the function without arguments."""
    if kind_of(filename) == NATIVE:
        return native_label(function)
    short = re.split(r"[/\\]", filename)[-1]
    return f"{short}:{line} {function}"


def native_label(name: str) -> str:
    """A function of C++'s in short: the operator, the graph's node, or its name."""
    operator = _OPERATOR.search(name)
    if operator is not None:
        return operator.group(1)
    node = _NODE.search(name)
    if node is not None:
        return node.group(1)
    plain = _ARGUMENTS.sub("", name.replace("(anonymous namespace)::", ""))
    return plain.rsplit("::", 1)[-1] or name


def stack_label(stacks: Stacks, stack: int) -> str:
    """A stack in short: its user frame, else the operator or node it was made by."""
    if stack < 0:
        return NO_STACK
    user_frame = int(stacks.user_frame[stack])
    if user_frame != NOTHING:
        return frame_label(
            stacks.name[user_frame],
            stacks.filename[user_frame],
            int(stacks.line[user_frame]),
        )
    frames = stacks.of(stack).tolist()
    names = [stacks.name[frame] for frame in frames]
    for pattern in (_NODE, _OPERATOR, _ENGINE):
        for name in names:
            match = pattern.search(name)
            if match is not None:
                return match.group(1)
    return native_label(names[0]) if names else NO_STACK
