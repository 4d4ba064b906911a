"""Events of Ascend's profiler get the categories and details that Kineto writes.

`trace_view.json` of torch_npu has torch's operators as Kineto writes them. What CANN and
the devices did comes from msprof, without categories; there the process tells what a slice
is:

Ascend Hardware     a thread per stream: kernels, copies, and waits for events
CANN                calls of its runtime, by the threads that made them
HCCL                a thread per group with its collectives, and the tasks that each is made
                    of; `Communication` since CANN 8
Overlap Analysis    the profiler's own sums: no work of its own

A merged trace has them once for each rank: `Rank 3 Ascend Hardware 800`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.formats.traces.columns import details
from memboard.tb_plugin.formats.traces.columns.details import RawTexts
from memboard.tb_plugin.formats.traces.columns.events import NO_ARGS

if TYPE_CHECKING:
    import numpy.typing as npt

    from memboard.tb_plugin.formats.traces.columns.gathering import Gathering

    Ints: TypeAlias = npt.NDArray[Any]
    Columns: TypeAlias = dict[str, Any]

_HARDWARE: Final = "Ascend Hardware"
_RUNTIME: Final = "CANN"
_COLLECTIVES: Final = frozenset({"HCCL", "Communication"})
_COPY: Final = re.compile(r"(?:MEMCPY|SDMA|PCIE_DMA)\w*", re.IGNORECASE)
_WAIT: Final = re.compile(
    r"(?:EVENT|NOTIFY|CAPTURE|STREAM)_\w+|PLACE_HOLDER\w*|(?:MEM_)?WRITE_VALUE\w*"
    r"|MODEL_\w+|PROFIL\w+|INVALID",
    re.IGNORECASE,
)
"""Tasks of a stream in which no core computes."""
_COLLECTIVE: Final = re.compile(
    r"hcom_\w+|hccl\w+|\w*all_?(?:reduce|gather)\w*", re.IGNORECASE
)
_KERNEL_CATEGORY: Final = "kernel"
_COPY_CATEGORY: Final = "gpu_memcpy"
_WAIT_CATEGORY: Final = "npu_wait"
_CALL_CATEGORY: Final = "cann_runtime"
_MOST_DEVICES: Final = 32
_PROCESS: Final = re.compile(
    r"(?P<rank>Rank .*? )?(?P<name>Ascend Hardware|CANN|HCCL|Communication)"
    r"(?: (?P<pid>\d+))?"
)
_STREAM: Final = re.compile(r"[Ss]tream (\d{1,9})")


class _Process(NamedTuple):
    rank: str
    """As a merged trace begins its name; else empty."""
    name: str
    pid: str  # As msprof wrote it


def with_work_of_npus(slices: Columns, gathered: Gathering) -> Columns:
    """The slices with categories; what ran on NPUs is device work of `gathered`.

    Args:
        slices: as they were gathered.
        gathered: whose tables of details get a row for each call and each work.
    """
    processes = _processes(gathered)
    device_by_rank = {
        process.rank: _device(gathered, pid, process)
        for pid, process in processes.items()
        if process.name == _HARDWARE
    }
    if not device_by_rank:
        return slices
    category = slices["category"].copy()
    names = gathered.texts.all
    category_codes = {
        category_name: gathered.texts[category_name]
        for category_name in (
            _KERNEL_CATEGORY,
            _COPY_CATEGORY,
            _WAIT_CATEGORY,
            _CALL_CATEGORY,
        )
    }
    for number, (pid, tid) in enumerate(gathered.tracks.ids):
        process = processes.get(pid)
        if process is None:
            continue
        own = np.flatnonzero((slices["track"] == number) & (category == 0))
        for code in np.unique(slices["name"][own]).tolist():
            category_name = _category(process.name, names[code])
            rows = own[slices["name"][own] == code]
            category[rows] = category_codes.get(category_name, 0)
        _add_calls(gathered, own[category[own] == category_codes[_CALL_CATEGORY]])
        is_work = np.isin(
            category[own],
            (category_codes[_KERNEL_CATEGORY], category_codes[_COPY_CATEGORY]),
        )
        device = device_by_rank.get(process.rank, NOTHING)
        if process.name == _HARDWARE:
            device = _device(gathered, pid, process)
        _add_work(gathered, own[is_work], device, _stream(gathered, pid, tid))
    return {**slices, "category": category}


def _processes(gathered: Gathering) -> dict[str, _Process]:
    """Those of msprof, by their ids."""
    processes = {}
    for (label, pid, _), text in gathered.labels.items():
        match = _PROCESS.fullmatch(str(text)) if label == "process_name" else None
        if match is not None:
            own_pid = match["pid"] or pid
            processes[pid] = _Process(match["rank"] or "", match["name"], own_pid)
    return processes


def _category(process: str, slice_name: str) -> str:
    if process == _RUNTIME:
        return _CALL_CATEGORY
    if process in _COLLECTIVES:
        return _KERNEL_CATEGORY if _COLLECTIVE.match(slice_name) else ""
    if _COPY.fullmatch(slice_name):
        return _COPY_CATEGORY
    return _WAIT_CATEGORY if _WAIT.fullmatch(slice_name) else _KERNEL_CATEGORY


def _add_calls(gathered: Gathering, rows: Ints) -> None:
    calls = details.launches([NO_ARGS] * len(rows), RawTexts(gathered.texts))
    gathered.tables["launches"].add({"slice": rows.astype(np.int32), **calls})


def _add_work(gathered: Gathering, rows: Ints, device: int, stream: int) -> None:
    work = details.device_work([NO_ARGS] * len(rows), RawTexts(gathered.texts))
    work["device"][:] = device
    work["stream"][:] = stream
    gathered.tables["device_work"].add({"slice": rows.astype(np.int32), **work})


def _device(gathered: Gathering, pid: str, process: _Process) -> int:
    """The index of the device, which msprof writes into the process id.

    Behind the number that orders processes: in two decimal digits, or in five bits.
    """
    order = next(
        (
            int(value)
            for (label, labelled_pid, _), value in gathered.labels.items()
            if label == "process_sort_index" and labelled_pid == pid
        ),
        None,
    )
    own_pid = process.pid
    if not own_pid.isdigit():
        return NOTHING
    if order is not None and own_pid[:-2].endswith(str(order)):
        return int(own_pid[-2:])
    return int(own_pid) % _MOST_DEVICES


def _stream(gathered: Gathering, pid: str, tid: str) -> int:
    """As the thread is called; a merged trace gives it another id."""
    match = _STREAM.search(str(gathered.labels.get(("thread_name", pid, tid), "")))
    if match is not None:
        return int(match[1])
    return int(tid) if tid.isdigit() and len(tid) < 10 else NOTHING
