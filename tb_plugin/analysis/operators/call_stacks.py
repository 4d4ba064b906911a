"""Python frames around the calls of an operator."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.own.frames import program_frames
from memboard.tb_plugin.analysis.arrays import NOTHING, picked, places_in
from memboard.tb_plugin.analysis.trace.texts import are
from memboard.tb_plugin.analysis.trace.trace import CAPTURED_MODULE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.operators.operator_times import OperatorTimes
    from memboard.tb_plugin.analysis.trace.trace import Trace

_MAX_FRAMES: Final = 200
_PYTHON: Final = re.compile(f"python_function|{CAPTURED_MODULE}", re.IGNORECASE)
FRAME: Final = re.compile(r"(.+)\((\d{1,9})\): (.*)", re.DOTALL)
"""`file(line): function`, as torch's profiler writes a frame."""


@dataclass(slots=True)
class CallStack:
    """Calls of an operator from one place."""

    frames: tuple[str, ...]
    """`file(line): function` each, the innermost first."""
    num_calls: int = 0
    host_ns: int = 0
    device_ns: int = 0


def longest_calls(times: OperatorTimes, calls: Ints, most: int) -> Ints:
    """Those that took longest on the host, these first."""
    order = np.argsort(-times.host_total_ns[calls], kind="stable")
    return calls[order[:most]]


def call_stacks(times: OperatorTimes, calls: Ints, most: int) -> list[CallStack]:
    """Stacks around calls, without frames of MemBoard's: those that took longest first.

    Of more than `most` the first are left, and among these those that have a frame.
    """
    trace = times.trace
    is_python = _is_python(trace)
    written = _written_stacks(trace, calls)
    by_frames: dict[tuple[str, ...], CallStack] = {}
    for call, text in zip(calls.tolist(), written.tolist(), strict=True):
        frames: list[str] = []
        around = int(trace.slices.parent[call])
        while around >= 0 and len(frames) < _MAX_FRAMES:
            if is_python[around]:
                frames.append(trace.name_of(around))
            around = int(trace.slices.parent[around])
        if not frames and text >= 0 and trace.strings[text]:
            frames = trace.strings[text].split(";", _MAX_FRAMES)[:_MAX_FRAMES]
        key = tuple(_of_program(frames) if frames else ())
        stack = by_frames.setdefault(key, CallStack(key))
        stack.num_calls += 1
        stack.host_ns += int(times.host_total_ns[call])
        stack.device_ns += int(times.device_total_ns[call])
    longest = sorted(by_frames.values(), key=lambda stack: -stack.host_ns)[:most]
    return [stack for stack in longest if stack.frames]


def has_stacks(trace: Trace) -> bool:
    """Whether the profiler recorded frames of Python in any way."""
    return bool(_is_python(trace).any()) or _has_text(trace, trace.operators.call_stack)


def has_shapes(trace: Trace) -> bool:
    """Whether it recorded shapes of inputs."""
    return _has_text(trace, trace.operators.input_dims)


def _has_text(trace: Trace, column: Ints) -> bool:
    """Whether a column of rows of texts has one that is not empty."""
    rows = np.unique(column[column >= 0])
    return any(trace.strings[int(row)] for row in rows[:2])


def _is_python(trace: Trace) -> Flags:
    """(slices,): whether it is a frame of Python."""
    return are(trace.strings, trace.slices.category, _PYTHON.fullmatch)


def _of_program(frames: Sequence[str]) -> Sequence[str]:
    """Without frames of MemBoard's, the innermost first."""
    matches = [FRAME.fullmatch(frame) for frame in frames]
    kept = program_frames(["" if match is None else match[1] for match in matches])
    return [frames[place] for place in kept]


def _written_stacks(trace: Trace, calls: Ints) -> Ints:
    """The stack that profilers before torch 1.13 wrote with each call, as row of texts.

    Its frames are separated by `;`, the innermost first; -1: none is written.
    """
    places = places_in(trace.operators.row, calls)
    return picked(trace.operators.call_stack, places, NOTHING)
