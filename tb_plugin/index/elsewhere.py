"""Where the numbers are of a run that has no steps, for the pages that have none of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tb_plugin import api

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    from tb_plugin.index.listing import MadeOf


class _Words(NamedTuple):
    source: str
    reason: str
    remedy: str
    host: str
    """What is said of the process and its host."""


_WORDS: Final[Mapping[MadeOf, _Words]] = {
    "memprofiler": _Words(
        source="memprofiler",
        reason="This run is made of MemProfiler's files: memory around calls and by"
        " module is in Functions and Modules.",
        remedy="Steps and hosts are recorded by MemBoard's own collector.",
        host="MemProfiler's files say nothing of hosts.",
    ),
    "snapshots": _Words(
        source="snapshots",
        reason="This run is made of memory snapshots: what they hold is in Allocations"
        " and Segments.",
        remedy="Steps, modules and hosts are recorded by MemBoard's own collector.",
        host="Memory snapshots say nothing of hosts.",
    ),
    "traces": _Words(
        source="traces",
        reason="This run is made of a profiler's traces: what they hold is in Trace.",
        remedy="Steps, modules and hosts are recorded by MemBoard's own collector.",
        host="Traces say nothing of hosts.",
    ),
}


def said_instead(
    made_of: MadeOf,
    num_ranks: int,
    status: Literal["recorded", "absent", "off", "failed"] = "recorded",
) -> tuple[api.Recorded, ...]:
    """What an imported run says of itself; nothing where it was recorded."""
    words = _WORDS.get(made_of)
    if words is None:
        return ()
    return (
        api.Recorded(
            source=words.source,
            status=status,
            num_ranks=num_ranks,
            reason=words.reason,
            remedy=words.remedy,
            cost="",
        ),
    )


def absent_instead(made_of: MadeOf) -> tuple[api.AbsentSeries, ...]:
    """Why an imported run has no series; nothing where it was recorded."""
    words = _WORDS.get(made_of)
    if words is None:
        return ()
    return (
        api.AbsentSeries("device", words.source, words.reason, words.remedy),
        api.AbsentSeries("host", "host", words.host, words.remedy),
    )
