"""Steps of a run's ranks that are the profiler's own, found by their captures."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, get_args, get_type_hints

import numpy as np

from memboard.collector.format.capture import TRACE_LOST
from memboard.collector.format.columns import STEP_TABLE
from memboard.tb_plugin.analysis.series.profiler_steps import (
    StepEnds,
    capture_step,
    trace_steps,
)
from memboard.tb_plugin.api.time.steps import ProfilerStep
from memboard.tb_plugin.facts.ranks.columns import STEP_TIME
from memboard.tb_plugin.formats.recording.captures.reading import (
    captures_of,
    traces_of,
)
from memboard.tb_plugin.formats.recording.series import SeriesKey, stamp_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.formats.recording.series import SeriesReader
    from memboard.tb_plugin.index.run import Run

MAX_SHOWN: Final = 500
_STAMP: Final = "profiler steps"
_WHAT: Final = get_args(get_type_hints(ProfilerStep)["what"])


def profiler_steps(
    reader: SeriesReader, run: Run, ranks: Iterable[int], phase: str, budget: Budget
) -> tuple[ProfilerStep, ...]:
    """Of all these ranks, each once: who trains beside one of them waits for it."""
    steps_of_profilers = set()
    for rank in ranks:
        again = np.inf
        for _, file in reversed(run.rank_files(rank)):
            if not budget.allows():
                break
            steps = reader.steps(file)
            if steps is None:
                continue
            # A later start of the job replaced the steps that it ran again.
            newest = min(steps[1], again)
            for step in profiler_steps_of(reader, file, phase, budget):
                if step.first <= newest:
                    last = int(min(step.last, newest))
                    steps_of_profilers.add(ProfilerStep(step.first, last, step.what))
            again = min(again, steps[0] - 1)
    return tuple(
        sorted(steps_of_profilers, key=lambda step: (step.first, step.last, step.what))
    )


def profiler_steps_of(
    reader: SeriesReader, file: RankFile, phase: str, budget: Budget
) -> list[ProfilerStep]:
    """Of one file; what the budget left out is read the next time."""
    key = (_STAMP, stamp_of(file), len(file.behind.captures.found), phase)
    make = partial(_of_file, reader, file, phase, budget)
    numbers = reader.derived(key, make, is_final=lambda _: not budget.exhausted)
    return [
        ProfilerStep(int(first), int(last), _WHAT[int(kind)])
        for kind, first, last in numbers.reshape(-1, 3)
    ]


def _of_file(
    reader: SeriesReader, file: RankFile, phase: str, budget: Budget
) -> Floats:
    rows = [
        [_WHAT.index(step.what), step.first, step.last]
        for step in _told(reader, file, phase, budget)
    ]
    return np.array(rows, np.float64).ravel()


def _told(
    reader: SeriesReader, file: RankFile, phase: str, budget: Budget
) -> Iterator[ProfilerStep]:
    for entry in captures_of(file, budget):
        step = capture_step(entry, phase)
        if step is not None:
            yield step
    # A cycle that was lost before it was traced took no time of the profiler's.
    traces = [
        trace for trace, _ in traces_of(file, budget) if trace.context != TRACE_LOST
    ]
    if not traces:
        return
    columns, _ = reader.aggregates(
        file, SeriesKey(STEP_TABLE, STEP_TIME, phase), ["step_last", "ns_last"]
    )
    ends = StepEnds(
        np.asarray(columns["step_last"], np.int64),
        np.asarray(columns["ns_last"], np.int64),
    )
    warmup = _warmup(file)
    for entry in traces:
        if entry.phase != phase:
            continue
        meta = reader.capture_metas.of(file, entry, budget)
        if meta is None:
            break
        yield from trace_steps(meta, warmup, ends)


def _warmup(file: RankFile) -> int:
    """Steps between which torch's profiler is made ready and started; 0: not known."""
    schedule = file.header.config.get("schedule")
    if not isinstance(schedule, dict) or schedule.get("choose") is not None:
        return 0
    warmup = schedule.get("warmup")
    counts = schedule.get("unit", "call") in ("call", "step")
    return warmup if isinstance(warmup, int) and counts else 0
