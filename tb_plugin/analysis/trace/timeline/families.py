"""Families of slices and instants, by category and name: they give the page's colours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from memboard.tb_plugin.analysis.kernel_names.host_calls import starts_communication
from memboard.tb_plugin.analysis.kernel_names.kinds import communicates
from memboard.tb_plugin.analysis.spans.events import CHECKPOINT, OUT_OF_MEMORY
from memboard.tb_plugin.analysis.time.step_marks import ENGINE_STEP
from memboard.tb_plugin.analysis.trace.categories import is_runtime, work_kind

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.trace.categories import WorkKind

TraceFamily: TypeAlias = Literal[
    "kernel",
    "operator",
    "runtime",
    "python",
    "communication",
    "memory",
    "step",
    "forward",
    "backward",
    "optimizer",
    "dataloader",
    "annotation",
    "oom",
    "checkpoint",
    "instant",
    "other",
]

FAMILIES: Final[tuple[TraceFamily, ...]] = get_args(TraceFamily)

_OF_WORK: Final[dict[WorkKind, TraceFamily]] = {
    "kernel": "kernel",
    "copy": "memory",
    "fill": "memory",
    "collective": "communication",
}
_OF_CATEGORY: Final[dict[str, TraceFamily]] = {
    "gpu_op": "kernel",
    "cpu_op": "operator",
    "operator": "operator",
    "overhead": "runtime",
    "cuda_sync": "runtime",
    "python_function": "python",
    "python": "python",
    "step": "step",
    "forward": "forward",
    "backward": "backward",
    "optimizer": "optimizer",
    "zero_grad": "optimizer",
    "dataloader": "dataloader",
    "communication": "communication",
    "user_annotation": "annotation",
    "gpu_user_annotation": "annotation",
    "checkpoint": "annotation",
    "eval": "annotation",
    "callback": "annotation",
    "user": "annotation",
    "captured_op": "operator",
    "captured_annotation": "annotation",
    "captured_module": "python",
}

_STEP: Final = re.compile(r"^ProfilerStep[#*]?")
_COPY: Final = re.compile(r"^(Memcpy|Memset)\b|^(cuda|hip)Mem(cpy|set)", re.IGNORECASE)
_DATALOADER: Final = re.compile(r"DataLoader.*__next__|^dataloader", re.IGNORECASE)
_OPTIMIZER: Final = re.compile(r"^Optimizer\.|^(optimizer|zero_grad)\b")
_PART: Final = re.compile(
    r"(^|[.\s#:])(forward|backward|optimizer)[\s#]*$", re.IGNORECASE
)
"""Names that people give the parts of a step in their own annotations."""
_BACKWARD: Final = re.compile(r"^autograd::engine|Backward\d*$")

_TOLD_BY_NAME: Final[
    tuple[tuple[TraceFamily, re.Pattern[str], frozenset[str]], ...]
] = (
    ("step", _STEP, frozenset({"annotation", "operator", "other"})),
    ("step", ENGINE_STEP, frozenset({"annotation"})),
    ("dataloader", _DATALOADER, frozenset({"annotation", "operator", "other"})),
    ("optimizer", _OPTIMIZER, frozenset({"annotation", "operator", "other"})),
    ("backward", _BACKWARD, frozenset({"operator"})),
    ("memory", _COPY, frozenset({"kernel", "other"})),
)
"""Names that are more exact than the families they may be found in."""


_OF_INSTANT: Final[dict[str, TraceFamily]] = {
    OUT_OF_MEMORY: "oom",
    CHECKPOINT: "checkpoint",
}


def family_of_instant(category: str) -> TraceFamily:
    """The family of an instant."""
    return _OF_INSTANT.get(category, "instant")


def _family_of_category(category: str) -> TraceFamily:
    work = work_kind(category)
    if work is not None:
        return _OF_WORK[work]
    if is_runtime(category):
        return "runtime"
    return _OF_CATEGORY.get(category.lower(), "other")


def family_of(category: str, slice_name: str) -> TraceFamily:
    """The family of a slice."""
    family = _family_of_category(category)
    if family == "kernel" and communicates(slice_name):
        return "communication"
    if family in ("operator", "annotation") and starts_communication(slice_name):
        return "communication"
    for told, pattern, among in _TOLD_BY_NAME:
        if family in among and pattern.search(slice_name):
            return told
    if family == "annotation" and (part := _PART.search(slice_name)):
        return part[2].lower()  # type: ignore[return-value]  # one of these words
    return family
