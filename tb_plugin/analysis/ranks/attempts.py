"""Files are grouped by attempts: starts of the job.

Files whose headers carry the same job text do. Where the environment told the writer
nothing, starts are swept in order of time, and a rank that is seen again (or a world
of another size) begins a new attempt. A file that lost its header joins the attempt
that began last before it and lacks its rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_SKEW_NS = 60 * 1_000_000_000
"""Ranks of one start begin within about this time of each other."""


@dataclass(frozen=True, slots=True)
class Start:
    """One file's claim to belong to an attempt."""

    rank: int
    started_ns: int
    job: str
    world_size: int
    """0 where the header is lost."""


def grouped(starts: Sequence[Start]) -> list[list[int]]:
    """Indices of `starts` by attempt; attempts and members in order of start."""
    by_job: dict[str, list[int]] = {}
    headless = []
    for index, start in enumerate(starts):
        if start.world_size == 0:
            headless.append(index)
        else:
            by_job.setdefault(start.job, []).append(index)
    attempts = [part for job in by_job.values() for part in _swept(starts, job)]
    attempts.sort(key=lambda part: starts[part[0]].started_ns)
    homeless = [index for index in headless if not _joined(starts, index, attempts)]
    attempts += _swept(starts, homeless)
    return sorted(attempts, key=lambda part: starts[part[0]].started_ns)


def _joined(starts: Sequence[Start], index: int, attempts: list[list[int]]) -> bool:
    start = starts[index]
    for attempt in reversed(attempts):
        began = starts[attempt[0]].started_ns <= start.started_ns + _SKEW_NS
        if began and all(starts[other].rank != start.rank for other in attempt):
            attempt.append(index)
            return True
    return False


def _swept(starts: Sequence[Start], indices: list[int]) -> list[list[int]]:
    attempts: list[list[int]] = []
    seen: set[int] = set()
    world_size = 0
    for index in sorted(indices, key=lambda i: (starts[i].started_ns, starts[i].rank)):
        start = starts[index]
        other_world = start.job == "" and 0 < start.world_size != world_size > 0
        if not attempts or start.rank in seen or other_world:
            attempts.append([])
            seen, world_size = set(), 0
        attempts[-1].append(index)
        seen.add(start.rank)
        world_size = world_size or start.world_size
    return attempts
