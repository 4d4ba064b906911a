"""Finished files of earlier attempts that nobody uploaded: a killed job's last ones."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from typing import TYPE_CHECKING, Final, NamedTuple

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
from collector.remote.manifest import SUFFIX, Manifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_QUIET_SECONDS: Final = 60.0
"""A file whose writer may be alive is left alone until it is this old."""

_HEAD_BYTES: Final = 1 << 20
_TAIL_BYTES: Final = 1 << 13


class Leftover(NamedTuple):
    """A file that is complete and may not have been uploaded."""

    stem: str
    """Of the recording it belongs to."""
    path: Path


def find_leftovers(
    run_dir: Path, *, own: str, rank: int, world_size: int
) -> Iterator[Leftover]:
    """Files of earlier attempts of this rank, recordings first.

    Rank 0 also takes those of ranks that the job has no more. `own` is the recording
    under way: what belongs to it is not among them.
    """
    folder = run_dir.joinpath(*RANK_FILES_DIR)
    files: dict[str, list[tuple[int, Path]]] = {}
    try:
        names = sorted(entry.name for entry in os.scandir(folder))
    except OSError:
        return
    for name in names:
        parsed = parse_rank_file_name(name)
        if parsed is None:
            continue
        is_orphan = rank == 0 and parsed.rank >= world_size
        stem = rank_file_stem(parsed.rank, parsed.attempt)
        if (parsed.rank == rank or is_orphan) and stem != own:
            files.setdefault(stem, []).append((parsed.segment or 0, folder / name))
    for stem, parts in files.items():
        parts.sort()
        for _, path in parts[:-1]:
            yield Leftover(stem, path)
        if _is_finished([path for _, path in parts]):
            yield Leftover(stem, parts[-1][1])
            # The scalars' file bears the end of the attempt's name.
            ending = f".{stem[-8:]}.{PLUGIN_NAME}"
            for path in (run_dir / SCALARS_DIR).glob(f"events.out.tfevents.*{ending}"):
                yield Leftover(stem, path)
    yield from _artifacts(run_dir, folder, names, own, set(files))


def _artifacts(
    run_dir: Path, folder: Path, names: list[str], own: str, stems: set[str]
) -> Iterator[Leftover]:
    """What manifests of earlier attempts say was still waiting."""
    for name in names:
        stem = name.removesuffix(SUFFIX)
        if stem in (name, own) or stem not in stems:
            continue
        manifest = Manifest(folder, stem)
        manifest.load()
        for entry in manifest.entries():
            path = run_dir / entry.path
            if entry.status == "waiting" and entry.kind != "events" and path.is_file():
                yield Leftover(stem, path)


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
