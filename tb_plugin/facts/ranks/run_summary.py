"""The summary of a run that the list of runs and every answer repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memboard.collector.format.names import started_ns_of
from memboard.tb_plugin.analysis.ranks.attempts import Start, grouped
from memboard.tb_plugin.api.base import RunSummary

if TYPE_CHECKING:
    from memboard.tb_plugin.formats.recording.series import SeriesReader
    from memboard.tb_plugin.index.run import Run


def summary_of(reader: SeriesReader, run: Run) -> RunSummary:
    """What the run picker shows, from the files opened so far."""
    attempts = run.attempts
    headers = [file.header for file in run.files.values() if file.has_records]
    device_types = [h.device_type for h in headers if h.device_type]
    device_types.sort(key="cpu".__eq__)  # an accelerator first, where any rank has one
    started = min((a.started_ns for a in attempts), default=0)
    newest = max((a.last_ns for a in attempts), default=0)
    if run.made_of != "recording":  # such files say no times but their own
        listings = [listing for listing in run.found.other_files if listing.files]
        started = min((listing.oldest_ns for listing in listings), default=0)
        newest = max((listing.newest_ns for listing in listings), default=0)
    return RunSummary(
        id=run.found.id,
        name=run.found.title,
        num_ranks=len(run.ranks),
        # Without headers it is what names say, which may be nothing.
        world_size=max(
            (h.world_size for h in headers),
            default=run.snapshots.world_size if run.made_of == "snapshots" else 0,
        ),
        num_attempts=_num_attempts(run),
        first_ms=started / 1e6,
        last_ms=newest / 1e6,
        last_step=_last_step(reader, run),
        live=run.is_live(),
        simulated=any(header.simulated for header in headers),
        virtual_gpu=next((h.virtual_gpu for h in headers if h.virtual_gpu), ""),
        imported=run.made_of != "recording",
        made_of=run.made_of,
        device_type=device_types[0] if device_types else "",
        num_problems=sum(not problem.is_note for problem in run.problems),
    )


def _last_step(reader: SeriesReader, run: Run) -> int | None:
    """The last step of the last attempt's lowest rank."""
    for attempt in reversed(run.attempts):
        for file in attempt.files.values():
            steps = reader.steps(file)
            if steps is not None:
                return steps[1]
    return run.snapshots.last_step if run.made_of == "snapshots" else None


def _num_attempts(run: Run) -> int:
    if run.made_of != "recording":
        return 1  # other tools' files do not tell their starts apart
    if run.is_whole:
        return len(run.attempts)
    starts = [
        Start(rank, started_ns_of(attempt), "", 1) for rank, attempt in run.found.files
    ]
    return len(grouped(starts))
