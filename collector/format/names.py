"""Directories, file names and version numbers of the disk format."""

from __future__ import annotations

import calendar
import re
from typing import Final, NamedTuple

PLUGIN_NAME: Final = "memboard"
"""TensorBoard's name for the plugin, and the `plugin_data` name of every record."""

FORMAT_VERSION: Final = 3
"""Major version of a rank's file. Raised where readers of another would misread it."""

RANK_FILES_DIR: Final = ("plugins", PLUGIN_NAME)
"""Below a run: where the rank files lie."""

SCALARS_DIR: Final = PLUGIN_NAME
"""Below a run: rank 0's only real `tfevents` file, alone in its directory.

Two writers in one directory lose data under both of TensorBoard's loaders.
"""

RUN_INDEX: Final = "run.index"
"""Beside rank files at a store: what opening them reads, in one object."""

MERGED_TRACE: Final = "merged_trace.json.gz"
"""In a run's directory: its traces as one, as `memboard merge` writes them."""

EXPORT_MARK: Final = "memboard_export.json"
"""Beside files that `memboard export` wrote: from which recording they are."""

DUMPS_DIR: Final = "memprofiler"
"""Below a run: where files for other tools go, and where MemProfiler puts its own."""

IMPORT_JOB: Final = "memboard-import-"
"""Prefix of the job's text where snapshots of other tools were brought into a run:
nothing ran, and no report stands beside these captures."""

_ATTEMPT = r"[0-9]{8}T[0-9]{9}-[0-9a-f]{8}"
_RANK_FILE = re.compile(
    rf"rank(?P<rank>[0-9]{{5,7}})-(?P<attempt>{_ATTEMPT})"
    r"(?:\.(?P<segment>[0-9]{4,8}))?\.events"
)


class RankFileName(NamedTuple):
    """The parts of a rank file's name."""

    rank: int
    attempt: str
    """UTC start time to the millisecond and a random suffix: sorts by time."""
    segment: int | None
    """Number of an immutable segment on object stores; None for one growing file."""


def rank_file_name(rank: int, attempt: str, segment: int | None = None) -> str:
    """Name of a rank's file, e.g. `rank00012-20261120T101530123-1f2e3d4c.events`.

    It must not contain `tfevents`: TensorBoard's loaders then leave it to the plugin.
    """
    middle = "" if segment is None else f".{segment:04d}"
    return f"{rank_file_stem(rank, attempt)}{middle}.events"


def rank_file_stem(rank: int, attempt: str) -> str:
    """The name without segment and ending: of the artifacts' folder, for one."""
    return f"rank{rank:05d}-{attempt}"


def parse_rank_file_name(file_name: str) -> RankFileName | None:
    """The parts of a file's name; None where it is not a rank file's."""
    match = _RANK_FILE.fullmatch(file_name)
    if match is None:
        return None
    segment = match["segment"]
    return RankFileName(
        rank=int(match["rank"]),
        attempt=match["attempt"],
        segment=None if segment is None else int(segment),
    )


def started_ns_of(attempt: str) -> int:
    """Start time in ns since the epoch of e.g. `20261120T101530123-1f2e3d4c`."""
    digits = attempt[:8] + attempt[9:18]
    year, month, day = int(digits[:4]), int(digits[4:6]), int(digits[6:8])
    hour, minute, second = int(digits[8:10]), int(digits[10:12]), int(digits[12:14])
    try:
        seconds = calendar.timegm((year, month, day, hour, minute, second))
    except ValueError:
        return 0
    return (seconds * 1000 + int(digits[14:17])) * 1_000_000
