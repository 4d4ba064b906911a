"""Route `/snapshot_files`: the peak of each imported snapshot.

A few files are opened at each question; what was found of one is small, and kept.
"""

from __future__ import annotations

from memboard.tb_plugin.api.memory.snapshot_files import (
    SnapshotFilesResponse,
)
from memboard.tb_plugin.facts.histories.file_peaks import (
    peaks_of_files,
    standing_of_files,
)
from memboard.tb_plugin.index.history_list import listed, of_rank
from memboard.tb_plugin.pages.histories.histories import HistoriesQuery
from memboard.tb_plugin.server.routes import RouteRequest, route


@route("snapshot_files", HistoriesQuery)
def snapshot_files(asked: RouteRequest[HistoriesQuery]) -> SnapshotFilesResponse:
    """Those of a run that is made of other tools' files; of others there are none."""
    state, query = asked.state, asked.query
    with state.reading(query.run) as reading:
        run = reading.run
        summary, version = state.summary(run), run.version
        all_histories = [] if run.made_of == "recording" else listed(*reading)
    wanted = of_rank(all_histories, query.rank)
    rows = peaks_of_files(state, run, wanted)
    if query.rank is None and rows:
        state.standings[query.run] = version, standing_of_files(query.run, rows)
    asked.decided_by(version, rows)
    return SnapshotFilesResponse(
        run=summary,
        files=tuple(rows),
        num_files=len(wanted),
        still_reading=reading.goes_on or any(row.state == "opening" for row in rows),
    )
