"""Finished files of earlier attempts that nobody uploaded: a killed job's last ones."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from collector.format.codec import CLOSE, HEADER, SEGMENT, decode_record
from collector.format.errors import FormatError
from collector.format.framing import Framed, find_last_frame, read_frames
from collector.format.names import (
    PLUGIN_NAME,
    RANK_FILES_DIR,
    SCALARS_DIR,
    parse_rank_file_name,
    rank_file_stem,
)
from collector.format.records import Header, Segment
from collector.mirror.waiting import SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collector.core.rank import Identity

_QUIET_SECONDS: Final = 60.0
"""A file whose writer may be alive is left alone until it is this old."""

_HEAD_BYTES: Final = 1 << 20
_TAIL_BYTES: Final = 1 << 13


def find_leftovers(run_dir: Path, who: Identity, own: str) -> Iterator[Path]:
    """Recordings of earlier attempts of this rank that are finished, and their scalars.

    Rank 0 also takes those of ranks that the job has no more. `own` is the recording
    under way: what belongs to it is not among them.
    """
    for stem, paths in _of_attempts(run_dir, ".events", who, own).items():
        yield from paths[:-1]
        if _is_finished(paths):
            yield paths[-1]
            # The scalars' file bears the end of the attempt's name.
            ending = f".{stem[-8:]}.{PLUGIN_NAME}"
            yield from (run_dir / SCALARS_DIR).glob(f"events.out.tfevents.*{ending}")


def find_lists(run_dir: Path, who: Identity, own: str) -> Iterator[Path]:
    """Lists of what waited as earlier attempts ended; see `waiting`."""
    return chain.from_iterable(_of_attempts(run_dir, SUFFIX, who, own).values())


def _of_attempts(
    run_dir: Path, ending: str, who: Identity, own: str
) -> dict[str, list[Path]]:
    """Files of earlier attempts that end so, by stem, in order."""
    found: dict[str, list[tuple[int, Path]]] = {}
    with contextlib.suppress(OSError):
        for entry in os.scandir(run_dir.joinpath(*RANK_FILES_DIR)):
            parsed = parse_rank_file_name(entry.name.removesuffix(ending) + ".events")
            if parsed is None or not entry.name.endswith(ending):
                continue
            is_orphan = who.rank == 0 and parsed.rank >= who.world_size
            stem = rank_file_stem(parsed.rank, parsed.attempt)
            if (parsed.rank == who.rank or is_orphan) and stem != own:
                part = parsed.segment or 0, Path(entry.path)
                found.setdefault(stem, []).append(part)
    return {stem: [path for _, path in sorted(found[stem])] for stem in sorted(found)}


def _is_finished(paths: Sequence[Path]) -> bool:
    """Whether nobody writes any more to the newest of a recording's files, the last."""
    newest = paths[-1]
    if _is_closed(newest):
        return True
    # A process that was killed as it began a file left nothing in it.
    header = next(filter(None, map(_header_of, reversed(paths))), None)
    if header is not None and header.host == socket.gethostname():
        with contextlib.suppress(psutil.Error, OSError, OverflowError):
            if not psutil.pid_exists(header.pid):
                return True
    return _is_quiet(newest)


def _is_quiet(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > _QUIET_SECONDS
    except OSError:
        return False


def _is_closed(path: Path) -> bool:
    """Whether a recording's newest file ends as one that ended in order."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            tail = file.read(_TAIL_BYTES)
    except OSError:
        return False
    at = find_last_frame(tail)
    if at is None:
        return False
    last = next(read_frames(tail[at:]), None)
    return isinstance(last, Framed) and last.kind == CLOSE


def _header_of(path: Path) -> Header | None:
    """Who wrote a file; None where it does not tell."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        for item in read_frames(head):
            if isinstance(item, Framed) and item.kind in (HEADER, SEGMENT):
                record = decode_record(item.kind, item.payload)
                if isinstance(record, Segment):
                    return record.header
                return record if isinstance(record, Header) else None
    except (OSError, FormatError):
        pass
    return None
