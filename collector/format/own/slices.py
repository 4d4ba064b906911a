"""The recorder's slices in a trace of torch's profiler, folded into slices of its name.

While modules are tracked torch calls each operator twice: once for the program, which ends
in `PythonDispatchMode`, and once more from in there. The program's is one call. So

- the second call is dropped, and what is in it belongs to the first;
- the mode's slice and the Python of it are the recorder's, before and after that call;
- frames that only pass on are the recorder's but for what they call, others with all that
  is in them; what has started the program is nobody's, nor are the recorder's threads, which
  mostly wait.

The recorder's time becomes slices of one name: `RECORDER`. A mode is ours where its Python
is recorded, or where the trace says that modules were tracked and the operator is not
passed on to another mode: then it is that one, as ours is entered before the program's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from memboard.collector.format.own.frames import DISPATCH_MODE, role_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    Ints: TypeAlias = npt.NDArray[Any]
    Flags: TypeAlias = npt.NDArray[np.bool_]

METADATA_KEY: Final = "memboard"
"""In a trace's metadata, a JSON object."""
TRACKS_MODULES: Final = "tracks_modules"
"""In it: true where our dispatch mode was on while the trace was recorded."""

PYTHON: Final = "python_function"
OPERATOR: Final = "cpu_op"
"""Categories, as torch's profiler spells them."""

_FRAME: Final = re.compile(r"(.+)\(\d+\): (.+)")
_DISPATCHES: Final = re.compile(r"(?:^|[/\\])modules[/\\]dispatch\.py$")
_THREAD: Final = re.compile(
    r"(?:^|[/\\])threading\.py (?:_bootstrap|_bootstrap_inner|run)$"
)
_CALLS_MODE: Final = re.compile(
    r"torch[/\\](?:_dynamo[/\\]eval_frame\.py _fn|_compile\.py inner)$"
)
_NONE: Final = -1


class Kind(IntEnum):
    """What a slice is, by its name and category."""

    OTHER = 0
    """Annotations, calls of the runtime, and all that does not run on the host."""
    OPERATOR = 1
    MODE = 2
    FRAME = 3
    BUILT_IN = 4
    THREAD = 5
    """The standard library's, which begin a thread."""
    CALLS_MODE = 6
    """Torch's, which call a dispatch mode, and much else."""
    DISPATCH = 7
    PASSES = 8
    WORKS = 9
    STARTS = 10


class _Fate(IntEnum):
    STAYS = 0
    REPEATED = 1
    RECORDER = 2
    NOBODY = 3


class _Caller(IntEnum):
    """What a slice is called from."""

    PROGRAM = 0
    PASSING = 1
    MODE = 2
    DISPATCH = 3
    WORK = 4
    BACKGROUND = 5
    """A thread of the recorder's: it mostly waits."""


@dataclass(frozen=True, slots=True, eq=False)
class HostSlices:
    """Of some threads; what holds another one comes before it."""

    name: Ints  # Row of `names`
    kind: Ints
    parent: Ints  # -1: none
    level: Ints
    """Above that of the parent."""
    start_ns: Ints
    end_ns: Ints


@dataclass(frozen=True, slots=True, eq=False)
class FoldedSlices:
    stays: Flags
    repeats: Ints
    """(slices,): the operator that a dropped call repeats, or -1."""
    root: Ints
    """(pieces,): the slice whose thread each piece of the recorder's time is of."""
    start_ns: Ints
    end_ns: Ints


def has_own(names: Sequence[str], metadata: Mapping[str, Any]) -> bool:
    """Whether any of a trace's slices can be the recorder's, by all of their names."""
    if tracks_modules(metadata) and DISPATCH_MODE in names:
        return True
    return any(
        "memboard" in name and _frame_kind(name) > Kind.CALLS_MODE for name in names
    )


def tracks_modules(metadata: Mapping[str, Any]) -> bool:
    """Whether the trace says so."""
    own = metadata.get(METADATA_KEY)
    return isinstance(own, dict) and own.get(TRACKS_MODULES) is True


def kinds(
    names: Sequence[str], categories: Sequence[str], name_row: Ints, category: Ints
) -> Ints:
    """(slices,): the `Kind` of each, by rows of the texts."""
    python = _among(categories, PYTHON)
    operator = _among(categories, OPERATOR)
    is_python, is_operator = category == python, category == operator
    of_frame = np.zeros(len(names), np.uint8)
    for row in np.unique(name_row[is_python]).tolist():
        of_frame[row] = _frame_kind(names[row])
    is_mode = name_row == _among(names, DISPATCH_MODE)
    kind_of_slice = np.where(is_python, of_frame[name_row], Kind.OTHER)
    kind_of_slice[is_operator] = Kind.OPERATOR
    kind_of_slice[is_operator & is_mode] = Kind.MODE
    return kind_of_slice


def folded(
    names: Sequence[str], slices: HostSlices, *, is_tracked: bool
) -> FoldedSlices:
    """The program's slices, and pieces of time that were the recorder's.

    Args:
        names: of all slices.
        slices: those of threads.
        is_tracked: whether the trace says that modules were tracked.
    """
    bare = _bare(names)[slices.name]
    fate, root, operator = _fates(slices, bare, _our_modes(slices, bare, is_tracked))
    parent = slices.parent
    repeats = np.where(fate == _Fate.REPEATED, operator, _NONE)
    is_ours = fate == _Fate.RECORDER
    # What the recorder's own work holds is in its slice: that has a root.
    is_hole = (parent != _NONE) & is_ours[parent] & (root == _NONE)
    holes = np.flatnonzero(is_hole)
    holes = holes[np.lexsort((slices.start_ns[holes], root[parent[holes]]))]
    roots = np.flatnonzero(is_ours & (root == np.arange(len(root))))
    begins = np.concatenate((slices.start_ns[roots], slices.end_ns[holes]))
    ends = np.concatenate((slices.start_ns[holes], slices.end_ns[roots]))
    by_begin = np.concatenate((roots, root[parent[holes]]))
    by_end = np.concatenate((root[parent[holes]], roots))
    first = np.argsort(by_begin, kind="stable")
    last = np.argsort(by_end, kind="stable")
    begins, ends, of_root = begins[first], ends[last], by_begin[first]
    lasts = ends > begins
    return FoldedSlices(
        fate == _Fate.STAYS, repeats, of_root[lasts], begins[lasts], ends[lasts]
    )


def relinked(linked: Ints, old: Ints, new: Ints) -> Ints:
    """Numbers of calls that were dropped become those of the calls that they repeat."""
    if not len(old):
        return linked
    order = np.argsort(old, kind="stable")
    old, new = old[order], new[order]
    place = np.minimum(np.searchsorted(old, linked), len(old) - 1)
    linked_rows: Ints = np.where(
        (old[place] == linked) & (linked > 0), new[place], linked
    )
    return linked_rows


def _fates(
    slices: HostSlices, bare: Ints, is_our_mode: Flags
) -> tuple[Ints, Ints, Ints]:
    """What becomes of each, the recorder's outermost and the program's operator around it."""
    kind, parent = slices.kind, slices.parent
    num = len(kind)
    fate = np.zeros(num, np.uint8)
    inside = np.zeros(num, np.uint8)
    root = np.full(num, _NONE, np.int64)
    operator = np.full(num, _NONE, np.int64)
    has_started = _around(slices, kind == Kind.STARTS, kind >= Kind.FRAME)
    is_thread = _our_threads(slices)
    has_started |= _around(slices, is_thread, kind == Kind.THREAD)
    is_leaf = np.ones(num, np.bool_)
    is_leaf[parent[parent != _NONE]] = False
    dispatches = _around(slices, kind == Kind.DISPATCH, kind >= Kind.MODE)
    for rows in _by_level(slices.level):
        up = parent[rows]
        has_up = up != _NONE
        around = np.where(has_up, inside[up], _Caller.PROGRAM)
        called = np.where(has_up, operator[up], _NONE)
        own = kind[rows]
        is_python = own >= Kind.FRAME
        in_mode = (around == _Caller.MODE) | (around == _Caller.DISPATCH)
        works = (around == _Caller.WORK) | (own == Kind.WORKS)
        waits = (around == _Caller.BACKGROUND) | is_thread[rows]
        starts = has_started[rows] | (waits & (own != Kind.OTHER))
        # Where the mode's Python is recorded, what it does not call is a subclass's.
        from_mode = (around == _Caller.MODE) & ~dispatches[up]
        repeats = (around == _Caller.DISPATCH) | from_mode
        repeats &= (own == Kind.OPERATOR) & (called != _NONE)
        repeats &= bare[rows] == bare[called]
        ours = is_our_mode[rows] | (in_mode & is_python) | (own == Kind.PASSES)
        ours |= own == Kind.DISPATCH
        ours |= (around == _Caller.PASSING) & (own == Kind.BUILT_IN) & is_leaf[rows]
        to = np.select(
            [starts, works & (own != Kind.OTHER), repeats, ours],
            [_Fate.NOBODY, _Fate.RECORDER, _Fate.REPEATED, _Fate.RECORDER],
            _Fate.STAYS,
        )
        fate[rows] = to
        is_ours = to == _Fate.RECORDER
        inside[rows] = np.select(
            [
                waits,
                works & ~starts,
                ~is_ours,
                (own == Kind.DISPATCH) | (around == _Caller.DISPATCH),
                is_our_mode[rows] | in_mode,
            ],
            [
                _Caller.BACKGROUND,
                _Caller.WORK,
                _Caller.PROGRAM,
                _Caller.DISPATCH,
                _Caller.MODE,
            ],
            _Caller.PASSING,
        )
        upper = np.where(has_up, root[up], _NONE)
        upper = np.where(is_ours | (works & ~starts), upper, _NONE)
        root[rows] = np.where(is_ours & (upper == _NONE), rows, upper)
        stays = (to == _Fate.STAYS) & (own == Kind.OPERATOR)
        operator[rows] = np.where(stays, rows, called)
    return fate, root, operator


def _our_threads(slices: HostSlices) -> Flags:
    """The outermost own frames of threads that the recorder began."""
    kind, parent = slices.kind, slices.parent
    begins = np.zeros(len(kind), np.bool_)
    for rows in _by_level(slices.level):
        up = parent[rows]
        begins[rows] = (kind[rows] == Kind.THREAD) & ((up == _NONE) | begins[up])
    is_ours: Flags = (kind == Kind.WORKS) & (parent != _NONE) & begins[parent]
    return is_ours


def _our_modes(slices: HostSlices, bare: Ints, is_tracked: bool) -> Flags:
    """Calls of dispatch modes that are ours, and torch's frames that call ours."""
    kind, parent = slices.kind, slices.parent
    is_mode = kind == Kind.MODE
    dispatches = np.flatnonzero(kind == Kind.DISPATCH)
    is_mode_call = _around(slices, kind == Kind.DISPATCH, kind == Kind.CALLS_MODE)
    is_mode_call &= kind == Kind.CALLS_MODE
    if is_tracked or len(dispatches):
        is_silent = is_mode.copy()
        # Whose Python is recorded is known by that alone.
        is_silent[parent[(parent != _NONE) & (kind >= Kind.FRAME)]] = False
        is_silent[_passed_on(slices, bare)] = False
        is_mode_call |= is_silent
    mode = np.full(len(kind), _NONE, np.int64)
    for rows in _by_level(slices.level):
        up = parent[rows]
        outer = np.where(up != _NONE, mode[up], _NONE)
        mode[rows] = np.where(is_mode[rows], rows, outer)
    proved = mode[dispatches]
    is_mode_call[proved[proved != _NONE]] = True
    return is_mode_call


def _passed_on(slices: HostSlices, bare: Ints) -> Ints:
    """Calls of modes that call their operator again, which another mode takes."""
    parent, kind = slices.parent, slices.kind
    inner = np.flatnonzero((kind == Kind.MODE) & (parent != _NONE))
    again = parent[inner]
    again = again[(kind[again] == Kind.OPERATOR) & (parent[again] != _NONE)]
    outer = parent[again]
    is_mode = (kind[outer] == Kind.MODE) & (parent[outer] != _NONE)
    again, outer = again[is_mode], outer[is_mode]
    passed_on: Ints = outer[bare[again] == bare[parent[outer]]]
    return passed_on


def _around(slices: HostSlices, chosen: Flags, can_hold: Flags) -> Flags:
    """The chosen slices, and those around them as far as each of these can hold them."""
    is_around: Flags = chosen.copy()
    if chosen.any():
        for rows in reversed(_by_level(slices.level)):
            up = slices.parent[rows[is_around[rows]]]
            up = up[up != _NONE]
            is_around[up[can_hold[up]]] = True
    return is_around


def _by_level(level: Ints) -> list[Ints]:
    order = np.argsort(level, kind="stable")
    if not len(level):
        return []
    return list(np.split(order, np.cumsum(np.bincount(level))[:-1]))


def _bare(names: Sequence[str]) -> Ints:
    """By name: a number that those have which differ in their library alone."""
    numbers: dict[str, int] = {}
    rows = (
        numbers.setdefault(name.rpartition("::")[2], len(numbers)) for name in names
    )
    return np.fromiter(rows, np.int64, len(names))


def _among(texts: Sequence[str], text: str) -> int:
    return texts.index(text) if text in texts else _NONE


_OF_ROLE: Final = {
    "": Kind.FRAME,
    "passes": Kind.PASSES,
    "works": Kind.WORKS,
    "starts": Kind.STARTS,
}


@lru_cache(maxsize=4096)
def _frame_kind(slice_name: str) -> Kind:
    if slice_name.startswith("<built-in"):
        return Kind.BUILT_IN
    frame = _FRAME.fullmatch(slice_name)
    if frame is None:
        return Kind.FRAME
    kind = _OF_ROLE[role_of(frame[1])]
    if _THREAD.search(f"{frame[1]} {frame[2]}"):
        return Kind.THREAD
    if _CALLS_MODE.search(f"{frame[1]} {frame[2]}"):
        return Kind.CALLS_MODE
    is_dispatch = kind == Kind.PASSES and _DISPATCHES.search(frame[1])
    return Kind.DISPATCH if is_dispatch and frame[2] == "__torch_dispatch__" else kind
