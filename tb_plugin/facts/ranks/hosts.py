"""Processes whose host memory grows, with what is left of it for all ranks of the host."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from memboard.tb_plugin.analysis.findings.host_growth import GrowingProcess, HostRoom
from memboard.tb_plugin.facts.ranks.columns import AVAILABLE, LIMIT_USED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memboard.collector.format.records import Header
    from memboard.tb_plugin.facts.ranks.rank_facts import FileFacts
    from memboard.tb_plugin.index.run import Run


def growing_processes_of(
    run: Run, facts: Mapping[int, FileFacts], column: str
) -> list[GrowingProcess]:
    """Ranks whose `column` (`RSS` or `WORKERS`) grows for sure.

    `facts`: of every rank's last attempt that is known, whichever are shown: all ranks of
    a host share what is left.
    """
    headers = {
        rank: files[-1][1].header for rank in facts if (files := run.rank_files(rank))
    }
    rooms: dict[str, HostRoom | None] = {}
    processes = []
    for rank, header in headers.items():
        of_rank = facts[rank]
        growth = of_rank.host_growth.get(column)
        if growth is None:
            continue
        if header.host not in rooms:
            there = [rank for rank, of in headers.items() if of.host == header.host]
            rooms[header.host] = _room(headers, facts, there)
        process = GrowingProcess(
            rank=rank,
            slope=growth.pace,
            rise=growth.rise,
            num_steps=growth.num_steps,
            last_step=of_rank.last_step or 0,
            peak=of_rank.readings[column].value,
            room=rooms[header.host],
            num_workers=of_rank.num_workers,
            # Nothing is pinned for a device that there is not.
            pinned_rise=0.0 if header.device_type == "cpu" else of_rank.pinned_rise,
        )
        processes.append(process)
    return processes


def _room(
    headers: Mapping[int, Header], facts: Mapping[int, FileFacts], ranks: Sequence[int]
) -> HostRoom | None:
    """What is left for the ranks of one host; None where that was not recorded.

    The first rank of a host records its memory, for all of them.
    """
    available = _latest(facts, ranks, AVAILABLE)
    limits = [headers[rank].memory_limit_bytes for rank in ranks]
    limit = min((float(limit) for limit in limits if limit), default=None)
    used = _latest(facts, ranks, LIMIT_USED)
    if available is None or (limit is not None and used is None):
        return None
    left, binding = available, None
    if limit is not None and used is not None and limit - used < available:
        left, binding = max(0.0, limit - used), limit
    growing = [rank for rank in ranks if facts[rank].host_growth]
    pace = sum(
        trend.pace for rank in growing for trend in facts[rank].host_growth.values()
    )
    return HostRoom(
        host=headers[ranks[0]].host,
        left=left,
        limit=binding,
        bytes_per_step=pace,
        num_ranks=len(growing),
    )


def _latest(
    facts: Mapping[int, FileFacts], ranks: Sequence[int], column: str
) -> float | None:
    """The last value of the first rank that recorded it; None: nobody did."""
    values = [
        facts[rank].latest[column] for rank in ranks if column in facts[rank].latest
    ]
    present = [value for value in values if not math.isnan(value)]
    return present[0] if present else None
