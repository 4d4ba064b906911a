"""The registry of other tools' formats: each declares its names, first bytes and listing.

The index, the command line and the drop-in upload ask here what a file is. A file that
matches by its name and cannot be opened is a problem with a name.
"""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from memboard.tb_plugin import storage
from memboard.tb_plugin.formats.memprofiler import names as dump_names
from memboard.tb_plugin.formats.memprofiler.listing import DumpListing
from memboard.tb_plugin.formats.other_profilers import other_profiler
from memboard.tb_plugin.formats.snapshots.files import names as snapshot_names
from memboard.tb_plugin.formats.snapshots.files.containers import (
    JSON,
    PICKLE,
    begins_like_snapshot,
    container_of,
    is_cut_off,
)
from memboard.tb_plugin.formats.snapshots.files.listing import SnapshotListing
from memboard.tb_plugin.formats.traces.files import names as trace_names
from memboard.tb_plugin.formats.traces.files.heads import (
    begins_like_trace,
    looks_like_trace,
)
from memboard.tb_plugin.formats.traces.files.listing import TraceListing
from memboard.tb_plugin.worker.limits import GZIP

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.tb_plugin.formats.file_listing import Likelihood, Listing

    Names: TypeAlias = Callable[..., Likelihood]

Kind: TypeAlias = Literal["memprofiler", "snapshots", "traces"]
MadeOf: TypeAlias = Literal["recording", "memprofiler", "snapshots", "traces"]
"""Origin of a run's files: our own, or another tool's."""

Verdict: TypeAlias = Literal[
    "snapshots", "traces", "other", "unfinished", "unclear", "stub"
]
"""unfinished: JSON without an end, which may become a trace. unclear: the file holds nothing
yet, or cannot be read now. stub: a pickle or a gzip that was cut off before anything tells
what of."""

HEAD_BYTES: Final = 1 << 16
_AUTO_HEADER: Final = 31
"""zlib: a gzip header is expected."""
_STUB_BYTES: Final = 256
"""The words of a snapshot begin earlier."""
_STOP: Final = b"."
"""The last byte of every whole pickle."""
_TAKE_AGAIN: Final = (
    "Write the file again, or copy it again, whole: a full disk and a killed process"
    " leave such files."
)
_COLLECTOR: Final = "Steps, modules and hosts are recorded by MemBoard's own collector."


@dataclass(frozen=True, slots=True)
class Format:
    """Files of one kind, of which runs are made."""

    kind: Kind
    title: str
    """Behind the name of a run whose directory has another one."""
    shown: str
    files: str
    """What they are and who writes them, in a list of all that is read."""
    match: Names
    """How likely a file is one, by its base name and whether it is at a store."""
    listing: type[Listing[Any, Any]]
    reason: str
    """Why a run of such files has no series."""
    about_hosts: str
    sniff: Callable[[bytes], bool] | None = None
    """Whether a file of any name is one, by its first bytes, inflated."""
    remedy: str = _COLLECTOR


MEMPROFILER: Final = Format(
    kind="memprofiler",
    title="MemProfiler",
    shown="MemProfiler's files",
    files="MemProfiler's folders of `rank_0_memory_stats.yaml` and the like",
    match=dump_names.likelihood,
    listing=DumpListing,
    reason="This run is made of MemProfiler's files: memory around calls and by module"
    " is in Calls and Modules.",
    about_hosts="MemProfiler's files hold no data about hosts.",
    remedy="Steps and hosts are recorded by MemBoard's own collector.",
)
SNAPSHOTS: Final = Format(
    kind="snapshots",
    title="snapshots",
    shown="memory snapshots",
    files="memory snapshots, as `torch.cuda.memory._dump_snapshot` writes them, or the"
    " same as JSON",
    match=snapshot_names.likelihood,
    listing=SnapshotListing,
    reason="This run is made of memory snapshots: Memory shows what they hold.",
    about_hosts="Memory snapshots hold no data about hosts.",
    sniff=begins_like_snapshot,
)
TRACES: Final = Format(
    kind="traces",
    title="traces",
    shown="a profiler's traces",
    files="traces of torch's profiler, of Composer and others, and what"
    " `export_memory_timeline` writes",
    match=trace_names.likelihood,
    listing=TraceListing,
    reason="This run is made of a profiler's traces: Trace shows them.",
    about_hosts="Traces hold no data about hosts.",
    sniff=begins_like_trace,
)
FORMATS: Final[dict[Kind, Format]] = {
    file_format.kind: file_format for file_format in (MEMPROFILER, SNAPSHOTS, TRACES)
}
WHAT_IS_READ: Final = (
    "Name one of these, gzipped or not: "
    + "; ".join(FORMATS[kind].files for kind in ("snapshots", "traces", "memprofiler"))
    + "; or the folder of a recording of MemBoard."
)
_BY_NAME: Final = (MEMPROFILER, TRACES, SNAPSHOTS)
"""Names of traces say more: `memory_snapshot.pt.trace.json` is one."""


def format_by_name(name: str) -> Format | None:
    """The format that a base name tells for sure."""
    return next(
        (file_format for file_format in _BY_NAME if file_format.match(name) == "yes"),
        None,
    )


def sniff(head: bytes) -> Verdict:
    """What the first bytes of a file, packed or not, tell."""
    if not head:
        return "unclear"
    if head[: len(GZIP)] == GZIP:
        try:
            head = zlib.decompressobj(_AUTO_HEADER).decompress(head, HEAD_BYTES)
        except zlib.error:
            return "other"
        if not head:
            return "stub"
    for kind, file_format in FORMATS.items():
        if (
            kind != "memprofiler"
            and file_format.sniff is not None
            and file_format.sniff(head)
        ):
            return kind
    if JSON.begins(head):
        is_whole = head.rstrip()[-1:] in (b"}", b"]")
        return "other" if is_whole or len(head) >= HEAD_BYTES else "unfinished"
    return "stub" if len(head) < _STUB_BYTES and is_cut_off(head) else "other"


def look(path: str) -> Verdict:
    """What a file is; `unclear` where it cannot be read.

    Raises:
        StorageError: a store has not sent it yet, or refused: ask again.
    """
    try:
        return sniff(storage.at(path).peek(path, 0, HEAD_BYTES))
    except storage.StorageError:
        raise
    except OSError:
        return "unclear"


def is_damaged(path: str) -> bool:
    """Whether a file named as a pickle is none, or lacks its end; unknown: False.

    Raises:
        StorageError: a store has not sent it yet, or refused: ask again.
    """
    try:
        head = storage.at(path).peek(path, 0, len(GZIP))
        if PICKLE.begins(head):
            return storage.at(path).peek(path, -1, 1) != _STOP
        return bool(head) and head != GZIP and container_of(head) is None
    except storage.StorageError:
        raise
    except OSError:
        return False


class UnknownFormatError(Exception):
    """A file that nothing here opens."""

    def __init__(self, what: str, remedy: str) -> None:
        # `what` is a sentence
        super().__init__(what)
        self.what = what
        self.remedy = remedy


def format_of(path: str) -> Format:
    """The format as which a file that a person named is opened, whatever its name.

    Raises:
        UnknownFormatError: it is none, or plainly damaged.
        StorageError: a store has not sent it yet, or refused: ask again.
    """
    fault = fault_of(path)
    if fault is None:
        return SNAPSHOTS
    if looks_like_trace(path):
        return TRACES
    raise UnknownFormatError(*fault)


def fault_of(path: str) -> tuple[str, str] | None:
    """What is plainly wrong with a snapshot's file, and what to do; None: nothing seen.

    Only its two ends are looked at: damage inside is found by reading it.

    Raises:
        StorageError: a store has not sent it yet, or refused: ask again.
    """
    try:
        head = storage.at(path).peek(path, 0, HEAD_BYTES)
        if not head:
            return "The file is empty.", _TAKE_AGAIN
        profiler = other_profiler(os.path.basename(path), head)  # noqa: PTH119  # a text
        if profiler is not None:
            return profiler.what, profiler.remedy
        verdict, is_packed = sniff(head), head[: len(GZIP)] == GZIP
        if verdict == "stub" and is_packed:
            return "The file was cut off while it was written.", _TAKE_AGAIN
        if verdict == "unfinished":
            sentence = "The JSON has no end: it was cut off while it was written."
            return sentence, _TAKE_AGAIN
        if verdict in ("other", "traces"):
            return "This is neither a memory snapshot nor a trace.", WHAT_IS_READ
        if container_of(head) is None and not is_packed:
            return "The pickle's first bytes are damaged.", _TAKE_AGAIN
        if PICKLE.begins(head) and storage.at(path).peek(path, -1, 1) != _STOP:
            sentence = "The pickle has no end: it was cut off while it was written."
            return sentence, _TAKE_AGAIN
    except storage.StorageError:
        raise
    except OSError as error:
        sentence = f"The file cannot be read: {error.strerror or error}."
        return sentence, str(
            getattr(error, "remedy", "Check its permissions and the disk.")
        )
    return None
