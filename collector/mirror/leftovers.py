"""Files of earlier attempts that nobody uploaded: a killed job's last ones."""

from __future__ import annotations

import contextlib
import os
import time
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memboard.collector.format.encoding.framing import (
    FramedRecord,
    find_last_frame,
    read_frames,
)
from memboard.collector.format.names import (
    PLUGIN_NAME,
    RANK_FILES_DIR,
    SCALARS_DIR,
    parse_rank_file_name,
    rank_file_stem,
)
from memboard.collector.format.records import CLOSE
from memboard.collector.mirror.jobs import SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.collector.process.rank import Identity

QUIET_SECONDS: Final = 60.0
"""A recording without an end, whose writer may be alive, is left alone until it is this
old."""

_TAIL_BYTES: Final = 1 << 13


def find_leftovers(run_dir: Path, who: Identity, own: str) -> Iterator[Path]:
    """Recordings of earlier attempts of this rank that are finished, and their scalars.

    Rank 0 also takes those of ranks that the job has no more. `own` is the recording
    under way: what belongs to it is not among them.
    """
    for stem, paths in _of_attempts(run_dir, ".events", who, own).items():
        yield from paths[:-1]
        if _is_finished(paths[-1]):
            yield paths[-1]
            # The scalars' file bears the end of the attempt's name.
            ending = f".{stem[-8:]}.{PLUGIN_NAME}"
            yield from (run_dir / SCALARS_DIR).glob(f"events.out.tfevents.*{ending}")


def find_lists(run_dir: Path, who: Identity, own: str) -> Iterator[Path]:
    """Lists of what waited as earlier attempts ended; see `jobs`."""
    return chain.from_iterable(_of_attempts(run_dir, SUFFIX, who, own).values())


def _of_attempts(
    run_dir: Path, ending: str, who: Identity, own: str
) -> dict[str, list[Path]]:
    """Files of earlier attempts that end so, by stem, in order."""
    parts_by_stem: dict[str, list[tuple[int, Path]]] = {}
    with contextlib.suppress(OSError):
        for entry in os.scandir(run_dir.joinpath(*RANK_FILES_DIR)):
            parsed = parse_rank_file_name(entry.name.removesuffix(ending) + ".events")
            if parsed is None or not entry.name.endswith(ending):
                continue
            is_orphan = who.rank == 0 and parsed.rank >= who.world_size
            stem = rank_file_stem(parsed.rank, parsed.attempt)
            if (parsed.rank == who.rank or is_orphan) and stem != own:
                part = parsed.segment or 0, Path(entry.path)
                parts_by_stem.setdefault(stem, []).append(part)
    return {
        stem: [path for _, path in sorted(parts_by_stem[stem])]
        for stem in sorted(parts_by_stem)
    }


def _is_finished(newest: Path) -> bool:
    """Whether nobody writes any more to the newest of a recording's files."""
    try:
        with newest.open("rb") as file:
            status = os.fstat(file.fileno())
            file.seek(max(0, status.st_size - _TAIL_BYTES))
            tail = file.read(_TAIL_BYTES)
    except OSError:
        return False
    frame_start = find_last_frame(tail)
    last = None if frame_start is None else next(read_frames(tail[frame_start:]), None)
    is_closed = isinstance(last, FramedRecord) and last.kind == CLOSE
    return is_closed or time.time() - status.st_mtime > QUIET_SECONDS
