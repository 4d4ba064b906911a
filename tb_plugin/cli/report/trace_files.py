"""Files of traces in a report, whoever wrote them: what each holds, and its problems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tb_plugin.analysis.ranks.share import share_of
from tb_plugin.analysis.trace.figures import trace_figures
from tb_plugin.analysis.trace.profile import TraceProfile
from tb_plugin.analysis.trace.trace import NOTHING
from tb_plugin.formats.traces import open_trace
from tb_plugin.jobs.worker.errors import ImportFailedError
from tb_plugin.jobs.worker.importer import Importer
from tb_plugin.jobs.worker.kinds import TRACE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tb_plugin.analysis.trace.trace import Trace
    from tb_plugin.formats.traces.files.found import FoundTrace
    from tb_plugin.index.run import Run


def trace_files_section(run: Run, rank: int | None) -> Iterator[dict[str, Any]]:
    """Every trace file of all ranks, or of one, in their order."""
    found = [one for one in run.traces.files if rank in (None, one.rank)]
    if not found:
        return
    importer = Importer()
    try:
        for one in found:
            importer.start(one.path, one.key, kind=TRACE)
        for one in found:
            yield _file(one, importer)
    finally:
        importer.close()


def _file(found: FoundTrace, importer: Importer) -> dict[str, Any]:
    said: dict[str, Any] = {
        "rank": found.rank,
        "worker": found.worker,
        "cycle": found.cycle,
        "name": found.name,
        "path": found.path,
        "exists": True,
        "num_bytes": found.num_bytes,
        "problem": None,
        "problems": [],
    }
    try:
        trace = open_trace(found.path, importer, listed=found.key)
    except ImportFailedError as error:
        said["problem"] = f"{error.what} {error.remedy}".strip()
        return said
    if found.is_share:
        trace = share_of(trace, found.rank)
    return {**said, **_figures(trace, found)}


def _figures(trace: Trace, found: FoundTrace) -> dict[str, Any]:
    rank = trace.facts.rank
    return {
        "rank": found.rank if rank == NOTHING else rank,
        "events": sum(trace.num_events.values()),
        "by_ph_cat": dict(trace.num_events),
        "baseTimeNanoseconds": trace.facts.base_time_ns or None,
        "displayTimeUnit": trace.facts.metadata.get("displayTimeUnit"),
        "distributedInfo": dict(trace.facts.distributed) or None,
        "n_device_properties": len(trace.facts.devices),
        **trace_figures(TraceProfile(trace), trace.facts.base_time_ns),
        "problems": [
            {"what": one.what, "count": one.count, "where": one.where}
            for one in trace.problems
        ],
    }
