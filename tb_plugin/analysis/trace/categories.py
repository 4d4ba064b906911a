"""Categories of events, as profilers of all vendors write them, from torch 1.8 to 2.15.

Kineto's activity types are the same for CUDA and ROCm; those of XPU, MTIA, HPU and of a
backend outside of torch (`privateuse1`) differ in calls of the runtime, and some in kernels.
Ascend's profiler writes none: `formats/traces/ascend.py` gives its events these.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

WorkKind: TypeAlias = Literal["kernel", "copy", "fill", "collective"]

_WORK: Final[dict[str, WorkKind]] = {
    "kernel": "kernel",
    "hpu_op": "kernel",
    "mtia_ccp_events": "kernel",
    "privateuse1_kernel": "kernel",
    "memcpy": "copy",
    "gpu_memcpy": "copy",
    "memset": "fill",
    "gpu_memset": "fill",
    "collective_comm": "collective",
    "gpu_collective_comm": "collective",
}
OPERATORS: Final = frozenset({"operator", "cpu_op"})
ANNOTATION: Final = "user_annotation"
OPERATORS_AND_ANNOTATIONS: Final = OPERATORS | {ANNOTATION}
"""Of the host, in lower case; marks of `record_function` are annotations, in old traces
operators."""
_QUEUES: Final = frozenset({"enqueue", "dequeue"})
"""Ascend's: a thread hands operators to another one, which calls the runtime."""


def work_kind(category: str) -> WorkKind | None:
    """The kind of a device's work; None: a slice of this category is none."""
    return _WORK.get(category.lower())


def is_runtime(category: str) -> bool:
    """Whether slices of a category are calls of a device's runtime or driver."""
    lower = category.lower()
    return lower.endswith(("runtime", "driver")) or lower in _QUEUES
