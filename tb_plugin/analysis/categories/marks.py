"""Marks of stacks: where a training was, by the names of their frames.

Each mark has a rule about one frame: a function's name, and where it matters the file it
is in. A stack bears the marks of all its frames. Frames are Python's or C++'s; a history
recorded with Python stacks alone has none of C++, and stacks of the autograd engine's
threads are then empty, which is a mark as well (`NO_PYTHON`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, picked
from memboard.tb_plugin.analysis.categories.frames import NATIVE, TORCH, USER

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.snapshots.snapshot import Stacks


MODULE: Final = 1 << 0
BACKWARD: Final = 1 << 1
ACCUMULATE: Final = 1 << 2
OPTIMIZER: Final = 1 << 3
OPTIMIZER_STATE: Final = 1 << 4
ALL_GATHER: Final = 1 << 5
REDUCE_SCATTER: Final = 1 << 6
UNSHARD: Final = 1 << 7
SHARD: Final = 1 << 8
BUCKET: Final = 1 << 9
MOVE: Final = 1 << 10
MAKE: Final = 1 << 11
DATA: Final = 1 << 12
COPY: Final = 1 << 13
WORKSPACE: Final = 1 << 14
NO_PYTHON: Final = 1 << 15


class _Rule(NamedTuple):
    mark: int
    name: str
    """What the function's name has to match."""
    filename: str
    """What the file has to match; empty: any."""


_MODULES: Final = r"[/\\]torch[/\\]nn[/\\]modules[/\\]"

_PYTHON_RULES: Final = (
    _Rule(MODULE, r"^(_call_impl|_wrapped_call_impl|_slow_forward)$", _MODULES),
    _Rule(MODULE, r"^forward$", ""),
    _Rule(BACKWARD, r"^(backward|_engine_run_backward|grad)$", r"[/\\]torch[/\\]"),
    _Rule(BACKWARD, r"^_?(pre|post)_backward(_\w+)?$", ""),
    _Rule(BACKWARD, r"^(unpack_hook|recompute_fn)$", r"[/\\]checkpoint\.py$"),
    _Rule(
        OPTIMIZER, "", r"[/\\]torch[/\\]optim[/\\]|[/\\](apex|bitsandbytes)[/\\]optim"
    ),
    _Rule(
        OPTIMIZER_STATE, r"^(_init_group|init_state|initialize_optimizer_states)$", ""
    ),
    _Rule(ALL_GATHER, r"all_?gather", r"fsdp|fully_shard|distributed|deepspeed"),
    _Rule(
        REDUCE_SCATTER,
        r"reduce_scatter|^foreach_reduce$",
        r"fsdp|distributed|deepspeed",
    ),
    _Rule(
        UNSHARD,
        r"^(_alloc_padded_unsharded_flat_param|init_unsharded_param"
        r"|(init|alloc)_all_gather_outputs)$",
        "",
    ),
    _Rule(
        SHARD, r"^(_init_sharded_param|_init_sharded_post_forward_param|shard)$", "fsdp"
    ),
    _Rule(MOVE, r"^(_apply|to_empty|load_state_dict)$", _MODULES),
    _Rule(
        MOVE, r"^(set_module_tensor_to_device|_load_state_dict_into_meta_model)$", ""
    ),
    _Rule(MAKE, r"^(__init__|reset_parameters)$", _MODULES),
    _Rule(MAKE, r"", r"[/\\]torch[/\\]nn[/\\]init\.py$"),
    _Rule(MAKE, r"^(from_pretrained|(build|create|make|load|init|setup)_model)$", ""),
    _Rule(DATA, "", r"[/\\]torch[/\\]utils[/\\]data[/\\]"),
    _Rule(
        DATA,
        r"^(_?(move_|send_|batch_|transfer_batch_|move_data_)?to_device"
        r"|_prepare_inputs?|\w*collate\w*|prefetch)$",
        "",
    ),
)

_NATIVE_RULES: Final = (
    _Rule(BACKWARD, r"^torch::autograd::Engine::|Backward\w*::(apply|release_var)", ""),
    _Rule(ACCUMULATE, r"\bAccumulateGrad::apply", ""),
    _Rule(BUCKET, r"^c10d::Reducer::", ""),
    _Rule(ALL_GATHER, r"^c10d::.*all_?gather", ""),
    _Rule(REDUCE_SCATTER, r"^c10d::.*reduce_scatter", ""),
    _Rule(COPY, r"^at::_ops::(_to_copy|to_device|to_dtype_layout)\w*::", ""),
    _Rule(WORKSPACE, r"getCUDABlas\w*Workspace|getCurrentCUDABlas|getCurrentCudnn", ""),
)

_INNERMOST_RULES: Final = (
    # C++ makes the buckets; torch builds them in `__init__`, and anew in the second forward.
    _Rule(
        BUCKET,
        r"^(_ddp_init_helper|_pre_forward|_rebuild_buckets)$",
        r"[/\\]torch[/\\]nn[/\\]parallel[/\\]distributed\.py$",
    ),
)
"""Of the innermost frame alone: what this function itself makes, not what it calls."""

_MADE_HERE: Final = "__init__"
"""A user frame of this name makes something that lasts."""


def stack_marks(stacks: Stacks) -> Ints:
    """(stacks,): the marks of each, as bits."""
    num = len(stacks)
    if not num:
        return np.empty(0, np.int64)
    kinds = stacks.kinds
    marks = _frame_marks(stacks, kinds)
    marks_of_stack = np.zeros(num, np.int64)
    np.bitwise_or.at(marks_of_stack, stacks.owner, marks[stacks.frame])
    has_frames = np.flatnonzero(np.diff(stacks.start))
    innermost = stacks.frame[stacks.start[has_frames]]
    marks_of_stack[has_frames] |= _innermost_marks(stacks)[innermost]
    if not np.any(kinds == NATIVE):
        marks_of_stack[np.diff(stacks.start) == 0] |= NO_PYTHON
    is_init = np.array([function == _MADE_HERE for function in stacks.name], np.bool_)
    marks_of_stack[picked((kinds == USER) & is_init, stacks.user_frame, False)] |= MAKE
    return marks_of_stack


def _frame_marks(stacks: Stacks, kinds: Ints) -> Ints:
    marks = np.zeros(len(stacks.name), np.int64)
    for frame, (function, filename) in enumerate(
        zip(stacks.name, stacks.filename, strict=True)
    ):
        rules = _NATIVE if kinds[frame] == NATIVE else _PYTHON
        marks[frame] = _marks_by(rules, function, filename)
    return marks


def _innermost_marks(stacks: Stacks) -> Ints:
    return np.array(
        [
            _marks_by(_INNERMOST, function, filename)
            for function, filename in zip(stacks.name, stacks.filename, strict=True)
        ],
        np.int64,
    )


def runs_autograd(stacks: Stacks) -> Flags:
    """By frame: whether it is the function of Python that runs autograd's engine."""
    return np.array(
        [
            _marks_by(_RUNS_AUTOGRAD, function, filename) != 0
            for function, filename in zip(stacks.name, stacks.filename, strict=True)
        ],
        np.bool_,
    )


def engine_stacks(stacks: Stacks) -> Flags:
    """By stack, and last for no stack: whether autograd's engine itself was at work.

    Not a function of Python that it called: on a thread of its own it has no frame of
    Python, and below the function that runs it no further one.
    """
    is_engine = np.zeros(len(stacks) + 1, np.bool_)
    if len(stacks):
        is_python = (stacks.kinds != NATIVE)[stacks.frame]
        innermost = picked(stacks.frame, stacks.first(is_python))
        alone = innermost == NOTHING
        is_engine[:-1] = alone & ((stacks.marks & (BACKWARD | NO_PYTHON)) != 0)
        is_engine[:-1] |= picked(runs_autograd(stacks), innermost, False).astype(
            np.bool_
        )
    return is_engine


def called_by_engine(stacks: Stacks) -> Flags:
    """By stack, and last for no stack: whether autograd's own thread called torch's Python.

    There the outermost frame of Python is torch's: a program begins elsewhere.
    """
    is_called = np.zeros(len(stacks) + 1, np.bool_)
    python = np.flatnonzero((stacks.kinds != NATIVE)[stacks.frame])
    owner = stacks.owner[python]
    is_last = np.append(np.diff(owner) != 0, True)[: len(owner)]
    outermost = python[is_last]
    is_called[owner[is_last]] = stacks.kinds[stacks.frame[outermost]] == TORCH
    return is_called


def python_marks(function: str, filename: str) -> int:
    """The marks of one frame of Python, as bits."""
    return _marks_by(_PYTHON, function, filename)


_Compiled: TypeAlias = tuple[tuple[int, re.Pattern[str], re.Pattern[str]], ...]


def _compiled(rules: tuple[_Rule, ...]) -> _Compiled:
    return tuple(
        (rule.mark, re.compile(rule.name), re.compile(rule.filename)) for rule in rules
    )


_ENGINE: Final = _Rule(
    BACKWARD,
    r"^(_engine_run_backward|backward|grad)$",
    r"[/\\]torch[/\\]autograd[/\\](graph|__init__)\.py$",
)
_RUNS_AUTOGRAD: Final = _compiled((_ENGINE,))
_INNERMOST: Final = _compiled(_INNERMOST_RULES)
_PYTHON: Final = _compiled(_PYTHON_RULES)
_NATIVE: Final = _compiled(_NATIVE_RULES)


def _marks_by(rules: _Compiled, function: str, filename: str) -> int:
    marks = 0
    for mark, of_name, of_file in rules:
        if of_name.search(function) and of_file.search(filename):
            marks |= mark
    return marks
