"""Training steps that a trace names: `ProfilerStep#12`, or spans of category `step`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tb_plugin.analysis.spans.tracks import STEP

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.trace.trace import Trace

    Ints: TypeAlias = npt.NDArray[Any]

_PROFILER_STEP: Final = re.compile(r"ProfilerStep[#*](\d{1,9})")
MAX_STEPS: Final = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Steps in order of time; columns of equal length."""

    number: Ints
    start_ns: Ints
    end_ns: Ints


def steps_of(trace: Trace) -> Steps:
    """Steps of the host's tracks; the newest 20,000."""
    numbers = {
        row: int(match[1])
        for row, text in enumerate(trace.strings)
        if (match := _PROFILER_STEP.fullmatch(text))
    }
    slices = trace.slices
    named = np.zeros(len(trace.strings) or 1, np.bool_)
    named[list(numbers)] = True
    categories = np.fromiter(
        (text == STEP for text in trace.strings), np.bool_, len(trace.strings)
    )
    found: list[tuple[int, int, int]] = []
    for track in trace.tracks:
        if track.kind == "device" or not track.num_slices:
            continue
        part = slice(track.first_row, track.first_row + track.num_slices)
        is_step = named[slices.name[part]]
        if track.kind == "span":
            is_step |= categories[slices.category[part]]
        for row in (np.flatnonzero(is_step) + track.first_row)[-MAX_STEPS:].tolist():
            number = numbers.get(int(slices.name[row]))
            if number is None:
                said = trace.args_of(row).get("step")
                number = said if isinstance(said, int) else -1
            start = int(slices.start_ns[row])
            found.append((start, start + int(slices.duration_ns[row]), number))
    found.sort()
    columns = np.array(found[-MAX_STEPS:], np.int64).reshape(-1, 3)
    return Steps(columns[:, 2], columns[:, 0], columns[:, 1])
