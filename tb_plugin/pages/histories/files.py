"""Route `/snapshot_files`: the peak of each imported snapshot.

A few files are opened at each question; what was found of one is small, and kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.analysis.findings.text import size_text
from memboard.tb_plugin.api.memory.snapshot_files import SnapshotFilesResponse
from memboard.tb_plugin.contract.table import Column, table_of, titled
from memboard.tb_plugin.facts.histories.file_peaks import (
    peaks_of_files,
    standing_of_files,
)
from memboard.tb_plugin.index.history_list import listed, of_rank
from memboard.tb_plugin.pages.histories.histories import HistoriesQuery
from memboard.tb_plugin.server.routes import RouteRequest, route

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.api.memory.snapshot_files import FilePeak
    from memboard.tb_plugin.api.tables import TableRows


_FILE: Final = (
    Column(
        "snapshot", "Snapshot", unit="name", help="A click opens its blocks at the peak"
    ),
    Column(
        "peak_bytes",
        "Peak",
        unit="bytes",
        help="Active bytes where memory ran out, else at the fullest moment",
        absent="Not read",
    ),
    Column(
        "reserved_bytes",
        "Reserved at the peak",
        unit="bytes",
        help="Reserved bytes at that moment",
        absent="Not read",
    ),
    Column(
        "categories",
        "Categories at the peak",
        unit="text",
        help="Active bytes at the peak by category",
        absent="Not read",
        sorts=False,
    ),
    Column(
        "largest",
        "Largest holder",
        unit="text",
        help="The line that holds most at the peak",
        absent="Not known",
    ),
    Column(
        "largest_bytes",
        "It holds",
        unit="bytes",
        help="Bytes of that line at the peak",
        absent="Not known",
    ),
    Column(
        "ended",
        "Ended",
        unit="text",
        help="Whether memory ran out",
        absent="It holds no history",
    ),
)
_STATES: Final = {
    "failed": "could not be read",
    "opening": "reading",
    "closed": "large: open it to read it",
}


def _table(files: Sequence[FilePeak]) -> TableRows:
    """One row a file, in order of time."""
    paths = [file.reference.path or file.reference.label for file in files]
    rows = table_of(
        _FILE,
        {
            "snapshot": [path.rsplit("/", 1)[-1] for path in paths],
            "peak_bytes": [file.peak_bytes for file in files],
            "reserved_bytes": [file.reserved_bytes for file in files],
            "categories": [
                ", ".join(
                    f"{category.category} {size_text(int(category.bytes))}"
                    for category in file.categories
                )
                for file in files
            ],
            "largest": [
                "" if file.largest is None else file.largest.label for file in files
            ],
            "largest_bytes": [
                None if file.largest is None else file.largest.bytes for file in files
            ],
            "ended": [_ended_text(file) for file in files],
        },
        usual="",
        more={
            "snapshot": {"hints": tuple(paths)},
            "ended": {"hints": tuple(file.problem for file in files)},
        },
    )
    return titled(rows, "Snapshots")


def _ended_text(file: FilePeak) -> str:
    """Empty: without a history nobody can say."""
    if file.state in _STATES:
        return _STATES[file.state]
    if file.out_of_memory is None:
        return ""
    return "out of memory" if file.out_of_memory else "no error"


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
        standing = standing_of_files(query.run, rows)
        state.standings.note(query.run, version, standing)
    asked.decided_by(version, rows)
    return SnapshotFilesResponse(
        run=summary,
        files=tuple(rows),
        table=_table(rows),
        num_files=len(wanted),
        still_reading=reading.goes_on or any(row.state == "opening" for row in rows),
    )
