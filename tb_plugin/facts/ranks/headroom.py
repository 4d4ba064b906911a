"""Headroom: what was left of a rank's memory at the moment that used most of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memboard.tb_plugin.facts.ranks.columns import (
    ALLOCATED,
    DEVICE_USED,
    LIMIT_USED,
    MEMORY_USED,
    RESERVED,
    RSS,
)
from memboard.tb_plugin.facts.ranks.rank_numbers import PerRank

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memboard.collector.format.prediction import Prediction
    from memboard.tb_plugin.facts.ranks.rank_numbers import RankNumbers
    from memboard.tb_plugin.facts.ranks.rank_strip import Strip
    from memboard.tb_plugin.index.run import Run


def device_headroom(numbers: RankNumbers, strip: Strip) -> PerRank:
    """Capacity less the most that was used, by anyone where that was recorded."""
    used = numbers.highest(strip.ranks, DEVICE_USED)
    reserved = numbers.highest(strip.ranks, RESERVED)
    by_others = used.value >= reserved.value
    return PerRank(
        value=strip.capacity_bytes - np.fmax(used.value, reserved.value),
        step=np.where(by_others, used.step, reserved.step),
        width=np.where(by_others, used.width, reserved.width),
    )


def host_headroom(run: Run, numbers: RankNumbers, strip: Strip) -> PerRank:
    """Limit less the most that was used of it, host by host.

    Ranks of a host share its memory. Where its use was not recorded, the ranks' own
    peaks are added up.
    """
    everyone = run.ranks
    used = numbers.highest(everyone, host_use_column(strip))
    own = numbers.highest(everyone, RSS)
    hosts = np.array([strip.host_of.get(rank, -1) for rank in everyone])
    value = np.full(len(strip.ranks), np.nan)
    step = np.full(len(strip.ranks), np.nan)
    for host in set(strip.host):
        there = hosts == host
        mine = np.asarray(strip.host) == host
        if not np.isnan(used.value[there]).all():
            most = np.nanmax(used.value[there])
            step[mine] = used.step[there][np.nanargmax(used.value[there])]
        elif not np.isnan(own.value[there]).all():
            most = np.nansum(own.value[there])
        else:
            continue
        value[mine] = strip.capacity_bytes[mine] - most
    return used._replace(value=value, step=step)


def host_use_column(strip: Strip) -> str:
    """What the use of a host's memory is read from: its control group's, or all."""
    return LIMIT_USED if strip.capacity_kind == "cgroup_limit" else MEMORY_USED


def predicted_headroom(
    predictions: Mapping[int, Prediction],
) -> dict[int, tuple[int, int]]:
    """Least and most of a real device, by rank, of those that ran on a virtual one."""
    return {
        rank: prediction.left
        for rank, prediction in predictions.items()
        if prediction.left and prediction.has_run
    }


def least_headroom(
    run: Run,
    numbers: RankNumbers,
    strip: Strip,
    predictions: Mapping[int, Prediction] | None,
) -> float:
    """Of the worst rank, in bytes; NaN: not known. `predictions`: of a virtual GPU."""
    if not numbers.has(ALLOCATED):
        values = host_headroom(run, numbers, strip).value
    elif predictions is not None:
        ends = predicted_headroom(predictions).values()
        values = np.array([low for low, _ in ends], np.float64)
    else:
        values = device_headroom(numbers, strip).value
    present = values[~np.isnan(values)]
    return float(present.min()) if len(present) else np.nan
