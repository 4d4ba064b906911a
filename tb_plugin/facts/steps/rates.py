"""Throughput and MFU: steps, samples, tokens and operations per second, by column.

A rate is what was done from the end of one column to the end of the next, by the time
between: whatever lies between two steps (an evaluation, a checkpoint) counts, as it
does for who waits for the training. A restart ends a rate; the next one begins anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

from memboard.collector.format.columns import STEP_TABLE
from memboard.tb_plugin.analysis.arrays import median
from memboard.tb_plugin.analysis.series.growth import warmup_rows
from memboard.tb_plugin.analysis.series.profiler_steps import usual_columns
from memboard.tb_plugin.api.base import f64
from memboard.tb_plugin.api.time.steps import StepFlops, StepRate
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.contract.wire import finite
from memboard.tb_plugin.facts.ranks.columns import STEP_TIME
from memboard.tb_plugin.facts.steps.profiler_steps import profiler_steps
from memboard.tb_plugin.formats.recording.captures.reading import (
    TRACE,
    captures_of,
)
from memboard.tb_plugin.formats.recording.series import SeriesKey, schemas_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from memboard.collector.format.encoding.numeric import Values
    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.api.time.steps import ProfilerStep
    from memboard.tb_plugin.formats.recording.captures.reading import CaptureMetas
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.formats.recording.series import SeriesReader
    from memboard.tb_plugin.index.run import Run


COUNTERS: Final = ("samples", "tokens")
FLOPS: Final = "flops"
_SETTINGS: Final = ("per_step", "per_sample", "per_token")


@dataclass(frozen=True, slots=True)
class _FlopsPerStep:
    """Floating point operations in one rank's steps, and what its device could do."""

    origin: Literal["settings", "trace", "nothing"]
    """settings: recorded with each step; trace: counted in one, `per_step` for all."""
    per_step: float
    device_peak: float


class Rates:
    """Rates of ranks over the same columns of whole steps."""

    def __init__(
        self, reader: SeriesReader, run: Run, phase: str, edges: Floats
    ) -> None:
        self._reader = reader
        self._run = run
        self._phase = phase
        # The ends of columns, and of what lies before the first.
        self._bounds = edges - 1

    def of_rank(self, rank: int, budget: Budget) -> dict[str, Floats]:
        """By key; without what the rank did not record."""
        rates: dict[str, Floats] = {}
        for _, file in self._run.rank_files(rank):
            for key, values in self._of_file(file, budget).items():
                is_known = ~np.isnan(values)
                # A later start of the job replaces what it runs again.
                kept = rates.setdefault(key, np.full(len(values), np.nan))
                kept[is_known] = values[is_known]
        return rates

    def _of_file(self, file: RankFile, budget: Budget) -> dict[str, Floats]:
        rates: dict[str, Floats] = {}
        # The first step has an end, though no time.
        ends = self._ends(file, STEP_TIME, all_rows=True)
        steps = rates["steps"] = self._rate(ends, ends["step_last"])
        for counter in COUNTERS:
            counted = self._counted(file, counter, budget)
            if counted is not None:
                rates[counter] = self._rate(counted, counted[f"{counter}:max"])
        flops = _known(self._run, file, self._reader, self._phase)
        if flops.origin == "nothing":
            return rates
        rates[FLOPS] = steps * self._per_step(file, flops)
        if flops.device_peak > 0:
            rates["mfu"] = 100.0 * rates[FLOPS] / flops.device_peak
        return rates

    def _per_step(self, file: RankFile, flops: _FlopsPerStep) -> Floats | float:
        if flops.origin == "trace":
            return flops.per_step
        columns = self._ends(file, FLOPS)
        ends = np.searchsorted(columns["step_last"], self._bounds[1:], "left")
        ends = np.clip(ends, 0, len(columns["step_last"]) - 1)
        values: Floats = np.asarray(columns[f"{FLOPS}:max"], np.float64)[ends]
        return values

    def _counted(
        self, file: RankFile, counter: str, budget: Budget
    ) -> Mapping[str, Values] | None:
        """A counter with its steps and times: row by row where that is cheap.

        Counters are rolled up coarsely: a hundred values over the whole run.
        """
        key = SeriesKey(STEP_TABLE, counter, self._phase)
        if not schemas_of(file, key):
            return None
        low, high = float(self._bounds[0]), float(self._bounds[-1])
        rows = self._reader.rows_between(
            file, key, ["step", "time_ns", counter], low, high, budget
        )
        if rows is not None and len(rows["step"]):
            inside = (rows["step"] >= low) & (rows["step"] <= high)
            values = np.asarray(rows[counter], np.float64)
            inside &= ~np.isnan(values)
            return {
                "step_last": rows["step"][inside],
                "ns_last": rows["time_ns"][inside],
                f"{counter}:max": values[inside],
            }
        return self._ends(file, counter)

    def _ends(
        self, file: RankFile, column: str, *, all_rows: bool = False
    ) -> Mapping[str, Values]:
        """The ends of a column's buckets; without `all_rows` of those that have a value."""
        key, value = SeriesKey(STEP_TABLE, column, self._phase), f"{column}:max"
        columns, _ = self._reader.aggregates(file, key, ["step_last", "ns_last", value])
        if all_rows:
            return columns
        is_known = ~np.isnan(np.asarray(columns[value], np.float64))
        return {name: values[is_known] for name, values in columns.items()}

    def _rate(self, ends: Mapping[str, Values], values: Values) -> Floats:
        """What `values` rose by in each column, per second."""
        step = np.asarray(ends["step_last"], np.float64)
        result = np.full(len(self._bounds) - 1, np.nan)
        if len(step) < 2 or not bool(np.all(np.diff(step) > 0)):
            return result
        # Between two known points the counter is taken to rise evenly.
        bounds = np.clip(self._bounds, step[0], step[-1])
        origin = int(ends["ns_last"][0])
        seconds = (ends["ns_last"] - origin) / 1e9
        rise = np.diff(np.interp(bounds, step, np.asarray(values, np.float64)))
        took = np.diff(np.interp(bounds, step, np.asarray(seconds, np.float64)))
        sane = (took > 0) & (rise >= 0)
        result[sane] = rise[sane] / took[sane]
        return result


def step_flops(reader: SeriesReader, run: Run, phase: str, rank: int) -> StepFlops:
    """Where the operations of a rank's steps come from."""
    files = [file for _, file in run.rank_files(rank)]
    flops = _FlopsPerStep("nothing", np.nan, np.nan)
    if files:
        flops = _known(run, files[-1], reader, phase)
    is_counted = flops.origin != "nothing"
    return StepFlops(
        origin=flops.origin,
        per_step=finite(flops.per_step) if is_counted else None,
        device_peak=finite(flops.device_peak),
        missing=_missing(is_counted, flops.device_peak > 0),
    )


def _summed(ranks: Iterable[Mapping[str, Floats]]) -> dict[str, Floats]:
    """Rates of all ranks together; of the share of what devices could do, the mean."""
    by_key: dict[str, list[Floats]] = {}
    for rates in ranks:
        for key, values in rates.items():
            by_key.setdefault(key, []).append(values)
    by_key.pop("steps", None)  # ranks take their steps together
    result = {}
    for key, pieces in by_key.items():
        stacked = np.stack(pieces)
        count = np.count_nonzero(~np.isnan(stacked), axis=0)
        total = np.nansum(stacked, axis=0)
        if key == "mfu":
            total = total / np.fmax(count, 1)
        result[key] = np.where(count > 0, total, np.nan)
    return result


def _as_rates(
    own: Mapping[str, Floats],
    together: Mapping[str, Floats],
    usual: npt.NDArray[np.bool_],
) -> tuple[StepRate, ...]:
    """What is known, in a fixed order; medians are those of the `usual` columns."""
    return tuple(
        StepRate(
            key=key,
            values=f64(own[key]),
            summed=f64(together.get(key, np.empty(0))),
            median=_usual(own[key], usual),
            summed_median=_usual(together[key], usual) if key in together else None,
        )
        for key in ("steps", *COUNTERS, FLOPS, "mfu")
        if key in own and not np.isnan(own[key]).all()
    )


def _usual(values: Floats, usual: npt.NDArray[np.bool_]) -> float | None:
    first = min(warmup_rows(len(values)), len(values) // 3)
    behind = values[first:][usual[first:]]
    present = behind[~np.isnan(behind)]
    return finite(median(present)) if len(present) else None


def _known(run: Run, file: RankFile, reader: SeriesReader, phase: str) -> _FlopsPerStep:
    settings = file.header.config.get(FLOPS)
    peak = _number(settings, "device_peak")
    key = SeriesKey(STEP_TABLE, FLOPS, phase)
    if schemas_of(file, key):
        columns, _ = reader.aggregates(file, key, [f"{FLOPS}:max"])
        values = np.asarray(columns[f"{FLOPS}:max"], np.float64)
        values = values[~np.isnan(values) & (values > 0)]
        if len(values):
            return _FlopsPerStep("settings", median(values), peak)
    budget = Budget(_OWN_SECONDS)
    per_step = _of_trace(file, reader.capture_metas, budget)
    if budget.exhausted:
        run.expect_more()  # what was read is cached: it comes to an end
    if per_step > 0:
        return _FlopsPerStep("trace", per_step, peak)
    return _FlopsPerStep("nothing", np.nan, peak)


def _of_trace(file: RankFile, metas: CaptureMetas, budget: Budget) -> float:
    """Operations per step that torch's profiler counted, in the newest trace."""
    for entry in reversed(captures_of(file, budget)):
        if entry.kind != TRACE:
            continue
        meta = metas.of(file, entry, budget)
        if meta is None:
            break
        flops, num_steps = _number(meta, FLOPS), _number(meta, "num_steps")
        if flops > 0 and num_steps >= 1:
            return flops / num_steps
    return np.nan


def _number(settings: object, setting: str) -> float:
    """A positive number of a plain mapping from a file; NaN where there is none."""
    value = settings.get(setting) if isinstance(settings, dict) else None
    sane = isinstance(value, int | float) and not isinstance(value, bool)
    number = float(value) if sane and value is not None else np.nan
    return number if 0 < number < np.inf else np.nan


def _missing(counted: bool, has_peak: bool) -> str:
    wanted = []
    if not counted:
        wanted.append(
            "the operations of a step: set flops.per_step, flops.per_sample or"
            " flops.per_token, or record a torch profile with torch_profiler.with_flops"
        )
    if not has_peak:
        wanted.append(
            "the device's peak rate: set flops.device_peak, in operations per second at"
            " the precision used"
        )
    return "; and ".join(wanted)


class RunRates(NamedTuple):
    """Rates of the first of some ranks, and of all of them together."""

    rates: tuple[StepRate, ...]
    num_summed: int
    """Ranks that the sums are of; fewer than all: there are no sums."""
    profiled: tuple[ProfilerStep, ...]
    """Steps that the medians leave out, where enough others remain."""


def run_rates(
    reader: SeriesReader,
    run: Run,
    phase: str,
    ranks: Sequence[int],
    edges: Floats,
) -> RunRates:
    """Throughput over columns of whole steps, and its medians: one number everywhere.

    Args:
        reader: reads the ranks' files.
        run: its lock is held.
        phase: whose steps are meant.
        ranks: those that recorded steps, at least one.
        edges: first step of each column, and the one after the last.
    """
    rates = Rates(reader, run, phase, edges)
    own = rates.of_rank(ranks[0], Budget(_OWN_SECONDS))
    num_summed, together = _summed_rates(run, rates, ranks, own)
    profiled = profiler_steps(reader, run, ranks, phase, Budget(_OWN_SECONDS))
    usual = usual_columns(profiled, edges)
    return RunRates(_as_rates(own, together, usual), num_summed, profiled)


MAX_COLUMNS: Final = 1000
"""Columns over which rates are taken: twenty columns of so many numbers are below 200 KB."""
_OWN_SECONDS: Final = 0.4
"""Time for reading steps one by one, where buckets would do."""
_MOST_SUMMED_FINELY: Final = 16

_MOST_AWAITED: Final = 256
"""Of so few ranks it is always to be had, but on a machine that is busy."""

_SUM_SECONDS: Final = 1.0
"""Time for the throughput of all ranks."""


def _summed_rates(
    run: Run, rates: Rates, ranks: Sequence[int], own: dict[str, Floats]
) -> tuple[int, dict[str, Floats]]:
    """Rates over all ranks, and how many that are; nothing where some are missing.

    Where that is for want of time alone the next poll is given them.
    """
    if len(ranks) == 1 or own.keys() <= {"steps"}:
        return 1, {}
    budget, rates_of_ranks = Budget(_SUM_SECONDS), [own]
    # All ranks row by row or none: the sum must not mix what is fine and what is not.
    finely = len(ranks) <= _MOST_SUMMED_FINELY
    for rank in ranks[1:]:
        if not budget.allows():
            if len(ranks) <= _MOST_AWAITED:
                run.expect_more()  # what was read is kept: it comes to an end
            return len(rates_of_ranks), {}
        rates_of_ranks.append(rates.of_rank(rank, budget if finely else Budget(0)))
    return len(rates_of_ranks), _summed(rates_of_ranks)
