"""Names of a trace's devices: `GPU 0`, `NPU 3`, `XPU 1`, as far as the file tells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.trace.trace import Trace

_TORCH_TYPES: Final = {
    0: "CPU",
    1: "CUDA",
    6: "HIP",
    9: "XLA",
    12: "XPU",
    13: "MPS",
    15: "HPU",
    19: "MTIA",
    20: "PrivateUse1",
}  # torch's `DeviceType`
_GPU: Final = "GPU"
_UNKNOWN: Final = "device"
_LABEL: Final = re.compile(r"\((?P<kind>[A-Za-z]\w*?)[ _:]?\d*\)$")
"""`python 0 (GPU 0)`: Kineto and its plugins label the process of each device."""
_NAMED_KIND: Final = re.compile(
    r"\b(GPU|NPU|XPU|MTIA|AIU|HPU|IPU|TPU|MPS|MLU|DCU|GCU|PPU)\b"
)
_KIND_BY_PREFIX: Final = (
    ("cuda_", _GPU),
    ("hip_", _GPU),
    ("runtime", _GPU),  # torch before 1.12, which knew CUDA alone
    ("xpu_", "XPU"),
    ("mtia_", "MTIA"),
    ("hpu_", "HPU"),
    ("privateuse1_", "PrivateUse1"),
)
"""By the first letters of a category in lower case."""


def torch_device_type(trace: Trace, number: int) -> str:
    """A number of torch's `DeviceType` in words; of a backend outside torch, the trace's."""
    type_name = _TORCH_TYPES.get(number, f"device type {number}")
    if type_name != "PrivateUse1":
        return type_name
    kind = device_kind(trace)
    return type_name if kind == _UNKNOWN else kind


def device_kind(trace: Trace) -> str:
    """`GPU`, `NPU`, `XPU` ...; `device` where the trace does not tell."""
    processes = {track.process for track in trace.tracks if track.kind == "device"}
    for process in sorted(processes):
        label = _LABEL.search(process)
        match = _NAMED_KIND.search(label[0] if label else process)
        if match:
            return match[1]
        if label and label["kind"].upper() != "CPU":
            return label["kind"]
    categories = {key.partition("|")[2].lower() for key in trace.num_events}
    for prefix, kind in _KIND_BY_PREFIX:
        if any(category.startswith(prefix) for category in categories):
            return kind
    return _GPU if trace.facts.devices else _UNKNOWN


def graphs_of_device(trace: Trace) -> str:
    """`CUDA graphs`, as torch calls them on GPUs of all vendors; `graphs` of another kind."""
    is_gpu = device_kind(trace) in (_GPU, _UNKNOWN)
    return "CUDA graphs" if is_gpu else "graphs"


def device_title(trace: Trace, device: int) -> str:
    """`GPU 0`; the kind alone where the file does not say which one."""
    kind = device_kind(trace)
    return f"{kind} {device}" if device >= 0 else kind
