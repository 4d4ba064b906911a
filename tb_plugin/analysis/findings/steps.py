"""Rules over the times of steps and their parts: what slows a training down.

None of them fires on noise: each asks for an effect worth mending, and for enough steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.arrays import median, robust_deviation
from memboard.tb_plugin.analysis.findings.text import (
    PART_TEXT,
    count,
    duration_text,
    of_rank,
    percent,
    share_text,
)
from memboard.tb_plugin.analysis.findings.text import seconds as seconds_of
from memboard.tb_plugin.analysis.findings.trace.advice import load_in_workers
from memboard.tb_plugin.analysis.series.growth import GROUPS, slope, warmup_rows
from memboard.tb_plugin.analysis.series.step_parts import (
    OTHER,
    middle_values,
    most_more,
    part_growth,
    with_other,
)
from memboard.tb_plugin.api.findings import Advice, Finding, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from memboard.tb_plugin.analysis.arrays import Floats, Indices, Ints
    from memboard.tb_plugin.analysis.findings.cycles import CollectedSteps
    from memboard.tb_plugin.analysis.ranks.stragglers import StepTimes


_MIN_COLUMNS: Final = 10

WAITING_SHARE: Final = 0.20
"""Of the step's time, from which on a training is said to wait for its data."""
_LOADER: Final = "dataloader"


def waiting_for_data(
    times: StepTimes, step_seconds: float, workers_of: Callable[[int], int | None]
) -> Finding | None:
    """Steps wait for the dataloader, on most ranks: one that waits is a straggler.

    `workers_of`: how many its DataLoader has on a rank; None: not known.
    """
    loader = times.parts.get(_LOADER)
    if loader is None or times.coarse_seconds.shape[1] < _MIN_COLUMNS:
        return None
    behind = slice(min(warmup_rows(loader.shape[1]), loader.shape[1] // 3), None)
    both = np.where(np.isnan(loader), np.nan, times.coarse_seconds)[:, behind]
    waited = np.nansum(loader[:, behind], axis=1)
    whole = np.nansum(both, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(whole > 0, waited / whole, np.nan)
    present = np.flatnonzero(~np.isnan(share))
    if not len(present):
        return None
    order = present[np.argsort(share[present], kind="stable")]
    middle, worst = int(order[(len(order) - 1) // 2]), int(order[-1])
    if not share[middle] > WAITING_SHARE:
        return None
    seconds = float(np.nanmean(loader[middle, behind]))
    num_workers = workers_of(times.ranks[middle])
    rank = times.ranks[worst]
    whose = "on the median rank" if len(times.ranks) > 1 else f"on rank {rank}"
    return Finding(
        id="dataloader_bound",
        key="dataloader_bound",
        severity="warning",
        title="Waiting for data",
        sentence=f"Steps wait for the dataloader: {share_text(float(share[middle]))} of"
        f" the step's time, {duration_text(seconds)} of {duration_text(step_seconds)},"
        f" {whose}.",
        rank=rank,
        cost=seconds,
        unit="seconds",
        advice=(
            Advice(load_in_workers(num_workers), seconds, "seconds", ("waits",)),
            Advice(
                "Move work out of the dataset: decode and tokenize once, before"
                " training."
            ),
        ),
        evidence=(
            percent("waiting", "waits for the dataloader", share[middle], whose[3:]),
            seconds_of("waits", "per step", seconds, whose[3:]),
            percent(
                "worst",
                "on the rank that waits most",
                share[worst],
                f"rank {rank}",
                sure=False,
            ),
        ),
        place=of_rank("steps", rank),
        rule=f"more than {share_text(WAITING_SHARE)} of the step's time, on the median"
        " rank",
    )


SLOW_FACTOR: Final = 1.5
"""A step is slow from that many times the median on."""
PERIODIC_COST: Final = 0.02
"""Least average cost of slow steps, as a share of the usual step."""
_SAME_GAPS: Final = 0.75
"""Of the steps at the distance, so many must be slow."""
_MOST_GAPS: Final = 64
_MIN_SLOW: Final = 4
_PERIODIC_ADVICE: Final[dict[str, str]] = {
    "checkpoint": "Save less often, or asynchronously"
    " (torch.distributed.checkpoint.async_save).",
    "eval": "Evaluate less often, or on fewer batches.",
    "dataloader": "Check whether a new data shard or epoch begins at this interval. If the"
    " DataLoader has workers, prefetch more (prefetch_factor) and keep them alive"
    " (persistent_workers=True).",
    "other": "Look for periodic work outside the timed parts: logging, a callback.",
}


def slow_every(
    step: Ints,
    seconds: Floats,
    parts: Mapping[str, Floats],
    rank: int,
    collected: CollectedSteps | None = None,
) -> Finding | None:
    """Slow steps come at equal distances; of single steps of one rank.

    `collected`: what the garbage collector did in them; None: not recorded.
    """
    measured = ~np.isnan(seconds)
    step, seconds = step[measured], seconds[measured]
    if len(step) < _MIN_COLUMNS:
        return None
    usual = float(np.median(seconds))
    slow = seconds > SLOW_FACTOR * usual
    # Slow steps next to each other are one event.
    begins = np.flatnonzero(slow & ~np.concatenate([[False], slow[:-1]]))
    if len(begins) < _MIN_SLOW or not usual > 0:
        return None
    every, phase = _period(step, begins)
    if every == 0:
        return None
    begins = begins[step[begins] % every == phase]
    slow = np.zeros(len(step), np.bool_)
    slow[begins] = True
    beyond = seconds[slow] - usual
    if beyond.sum() / len(seconds) < PERIODIC_COST * usual:
        return None
    known_parts = {name: values[measured] for name, values in parts.items()}
    part, more = most_more(with_other(known_parts, seconds), slow)
    full_runs = None if collected is None else collected.full_runs(measured, slow)
    of_slow, newest = float(np.median(seconds[slow])), int(step[begins[-1]])
    cost = (of_slow - usual) / every
    why = f"; {PART_TEXT[part]} takes {duration_text(more)} longer" if part else ""
    if full_runs:
        why += "; Python's garbage collector makes a full run in it"
    return Finding(
        id="slow_every_n",
        key="slow_every_n",
        severity="warning",
        title="Slow steps at regular intervals",
        sentence=f"One step in {every:,} is slow: {duration_text(of_slow)} instead of"
        f" {duration_text(usual)}{why}.",
        rank=rank,
        step=newest,
        cost=cost,
        unit="seconds",
        advice=tuple(
            Advice(text, cost, "seconds", ("slow", "usual"))
            for text in _periodic_advice(part, collected, full_runs)
        ),
        evidence=(
            count(
                "slow_steps", "slow steps at this interval", len(begins), f"rank {rank}"
            ),
            seconds_of("slow", "slow step", of_slow, "median"),
            seconds_of("usual", "usual step", usual, "median"),
        ),
        place=Place("steps", f"Show step {newest}", rank=rank, step=newest),
        rule=f"{SLOW_FACTOR:g} times the median step, in {share_text(_SAME_GAPS)} of the"
        f" steps at one interval, costing {share_text(PERIODIC_COST)} of the time",
    )


def _periodic_advice(
    part: str, collected: CollectedSteps | None, full_runs: bool | None
) -> Iterator[str]:
    """By the part that takes longer, and by what the collector did in these steps."""
    if full_runs and collected is not None:
        yield collected.advice
    if part in _PERIODIC_ADVICE and not (full_runs and part == OTHER):
        yield _PERIODIC_ADVICE[part]
    elif part and not full_runs:
        yield f"Look for what {PART_TEXT[part]} does in these steps alone."
    elif not full_runs:
        yield "Look for periodic work: an evaluation, a checkpoint, logging, a callback."
    if full_runs is None and part in ("", OTHER):
        yield (
            "If gc.get_stats() counts a full collection in these steps, it is Python's"
            " garbage collector: what it did was not recorded."
        )


def _period(step: Ints, begins: Indices) -> tuple[int, int]:
    """At which distance slow steps come, and where they begin; (0, 0): at none.

    Slow steps may have other causes too: of those that come at the distance nearly all
    must be slow, and they must be at least half of all slow ones.
    """
    events = step[begins]
    gaps = np.concatenate([np.diff(events), events[2:] - events[:-2]])
    values, counts = np.unique(gaps, return_counts=True)
    period, most = (0, 0), 0
    for every in values[np.argsort(-counts, kind="stable")][:_MOST_GAPS]:
        if every < 2:
            continue
        phases, hits = np.unique(events % every, return_counts=True)
        phase, num_hits = int(phases[np.argmax(hits)]), int(hits.max())
        expected = int(np.count_nonzero(step % every == phase))
        sure = num_hits >= max(_MIN_SLOW, _SAME_GAPS * expected)
        if sure and 2 * num_hits >= len(events) and num_hits > most:
            period, most = (int(every), phase), num_hits
    return period


GROWTH_SHARE: Final = 0.10
"""Least growth of the step's time from the start to the end."""
_MIN_GROWTH_COLUMNS: Final = 40
_SURE: Final = 4.0
"""Standard errors by which a growth must differ from none."""


def growing(step: Ints, times: StepTimes) -> Finding | None:
    """Steps take ever longer; `step` is the first of each column."""
    seconds = middle_values(times.seconds)
    rows = np.flatnonzero(~np.isnan(seconds))
    rows = rows[rows >= warmup_rows(len(seconds))]
    if len(rows) < _MIN_GROWTH_COLUMNS:
        return None
    x, y = step[rows].astype(np.float64), seconds[rows]
    per_step = float(slope(step, seconds))
    total = per_step * (x[-1] - x[0])
    quarter = len(y) // 4
    first, last = float(np.median(y[:quarter])), float(np.median(y[-quarter:]))
    if not (total >= GROWTH_SHARE * first and last >= (1 + GROWTH_SHARE / 2) * first):
        return None
    groups = [np.median(part) for part in np.array_split(y, min(GROUPS, len(y)))]
    middles = [np.median(part) for part in np.array_split(x, len(groups))]
    rest = np.array(groups) - per_step * np.array(middles)
    noise = robust_deviation(rest, median(rest))
    # The standard error of a straight line's rise over evenly spaced points.
    if total < _SURE * noise * np.sqrt(12 / len(groups)):
        return None
    part = part_growth(times.parts, times.coarse_seconds)
    why = f", mostly in {PART_TEXT[part]}" if part else ""
    return Finding(
        id="growing",
        key="growing",
        severity="warning",
        title="Steps slow down",
        sentence=f"Steps slow down: {duration_text(first)} at the start,"
        f" {duration_text(last)} at the end of {counted(int(x[-1] - x[0]), 'step')}{why}.",
        cost=last - first,
        unit="seconds",
        advice=(
            Advice(
                "Look for something that grows with each step: a list that keeps"
                " tensors (see the growth of memory on the Overview), logs, an unbounded"
                " cache.",
                last - first,
                "seconds",
                ("growth",),
            ),
            Advice(
                "On a GPU, check its clock and temperature (see Timeline): a hot device"
                " lowers its clock."
            ),
        ),
        evidence=(
            seconds_of(
                "growth",
                "growth per 1,000 steps",
                1000 * per_step,
                "median over the ranks",
                sure=True,
            ),
            seconds_of("first", "at the start", first, "after the warm-up"),
            seconds_of("last", "at the end", last, "the last quarter"),
        ),
        place=Place("steps", "Show the steps"),
        rule=f"growth of {share_text(GROWTH_SHARE)} and {_SURE:g} standard errors",
    )
