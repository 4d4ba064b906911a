"""The kinds of files that are imported, and what their reading may take."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

MIB: Final = 1 << 20


class Kept(Protocol):
    """What the cache tells files of one content by."""

    @property
    def name(self) -> str:
        """What was made of the content."""

    @property
    def version(self) -> int | str:
        """Of what made it: another one would make something else."""


class Kind(NamedTuple):
    """How files of one kind are read."""

    name: str
    module: str
    """Its `read_tables(file, report)` gives tables, and what is written with them."""
    version: int
    """To be raised when the same file would give other tables than before."""
    memory_bytes: int
    """Of any file; the next three add to it for a file's size."""
    memory_per_byte: float
    most_memory_bytes: int
    gzip_ratio: int
    """Of what inflates, at least so many bytes are expected for each."""
    cpu_s: float
    cpu_s_per_byte: float
    """Three times what the slowest way of reading needs."""
    remedy: str
    """What to do where a limit was met."""
    sample: bytes = b""
    """A small file. A process that others are forked from reads it, so that what is
    imported and made at first use is there in all of them."""


SNAPSHOT: Final = Kind(
    name="snapshot",
    module="tb_plugin.formats.snapshots.snapshot_file",
    version=1,
    memory_bytes=384 * MIB,
    memory_per_byte=0.25,
    most_memory_bytes=3072 * MIB,
    gzip_ratio=8,
    cpu_s=10.0,
    cpu_s_per_byte=4.0 / MIB,
    remedy="If torch wrote it, please report this with the file's size; until then"
    " record fewer entries: torch.cuda.memory._record_memory_history(max_entries=...).",
)
TRACE: Final = Kind(
    name="trace",
    module="tb_plugin.formats.traces.trace_file",
    version=2,
    memory_bytes=512 * MIB,
    memory_per_byte=0.75,
    most_memory_bytes=4096 * MIB,
    gzip_ratio=40,
    cpu_s=10.0,
    cpu_s_per_byte=1.0 / MIB,
    remedy="If a profiler wrote it, please report this with the file's size; until then"
    " profile fewer steps, or without stacks and shapes.",
    sample=b"""{"schemaVersion": 1, "distributedInfo": {"rank": 0}, "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1.5, "dur": 4,
 "args": {"External id": 1, "Input Dims": [[1]], "Concrete Inputs": ["1"]}},
{"ph": "X", "cat": "cuda_runtime", "name": "b", "pid": 1, "tid": 1, "ts": 2, "dur": 1,
 "args": {"correlation": 1}},
{"ph": "X", "cat": "kernel", "name": "c", "pid": 0, "tid": 7, "ts": 3, "dur": 1,
 "args": {"correlation": 1, "device": 0, "stream": 7, "Collective name": "send"}},
{"ph": "s", "id": 1, "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 1, "ts": 2},
{"ph": "f", "id": 1, "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": 3},
{"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 2, "args": {"Bytes": 1}},
{"ph": "M", "name": "process_name", "pid": 1, "tid": 1, "ts": 1, "args": {"name": "d"}}
]}""",
)
KINDS: Final = {kind.name: kind for kind in (SNAPSHOT, TRACE)}
