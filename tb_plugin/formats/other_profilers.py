"""Files of profilers that MemBoard does not read: named, with what to use instead."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_INSTEAD: Final = (
    "Record with torch.profiler, which has the same kernels with the operators that launch"
    " them: prof.export_chrome_trace('trace.json'), or `torch_profiler` in MemBoard's"
    " settings. Open this file with {viewer}."
)


class OtherProfiler(NamedTuple):
    """A tool whose files have no operators of PyTorch, and no memory of its allocator."""

    what: str
    """A sentence: which tool wrote the file."""
    viewer: str
    names: re.Pattern[str]
    """Of files that no other tool writes."""
    head: re.Pattern[bytes]
    """First bytes of files that may have any name."""

    @property
    def remedy(self) -> str:
        """A sentence: the tool that writes what is read, and the one for this file."""
        return _INSTEAD.format(viewer=self.viewer)


_OTHER_PROFILERS: Final = (
    OtherProfiler(
        what="This is a report of Nsight Systems (nsys), which MemBoard does not read.",
        viewer="Nsight Systems",
        names=re.compile(r".+\.(?:nsys-rep|qdrep|qdstrm)", re.IGNORECASE),
        head=re.compile(rb'\{[^{}]*"(?:CudaEvent|NvtxEvent|TraceProcessEvent)"\s*:'),
    ),
    OtherProfiler(
        what="This is an export of ROCm's profiler (rocprof), which MemBoard does not read.",
        viewer="Perfetto or rocpd",
        names=re.compile(
            r"(?:.*_)?(?:kernel|hip_api|hsa_api|hip_runtime_api|memory_copy|marker_api"
            r"|memory_allocation|scratch_memory|rccl_api|counter_collection|agent)"
            r"_(?:trace|info|stats)\.csv|\d+_results\.(?:json|db|csv)|.+\.rpd",
            re.IGNORECASE,
        ),
        head=re.compile(rb'\s*\{\s*"rocprofiler-sdk-tool"\s*:'),
    ),
    OtherProfiler(
        what="This is a SQLite database, as nsys and rocpd export it: MemBoard does not read"
        " it.",
        viewer="the profiler that wrote it",
        names=re.compile(r".+\.(?:nsys\.sqlite|rocpd)", re.IGNORECASE),
        head=re.compile(rb"SQLite format 3\0"),
    ),
)


def other_profiler(file_name: str, head: bytes = b"") -> OtherProfiler | None:
    """The tool that wrote a file, by its base name or its first bytes, inflated."""
    return next(
        (
            profiler
            for profiler in _OTHER_PROFILERS
            if profiler.names.fullmatch(file_name) or profiler.head.match(head)
        ),
        None,
    )
