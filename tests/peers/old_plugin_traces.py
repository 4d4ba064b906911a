"""Traces that torch-tb-profiler and MemBoard both read, by folder.

Some are made here: the same two ranks as the profiler of torch 1.9 wrote them, and as it
does since torch 1.12; a training on the CPU as torch traces it now. Others are recorded
ones, where `MEMBOARD_REAL_DATA` and `MEMBOARD_MORE_TRACES` name them.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from tests.kineto_files import KinetoFile

REAL = Path(os.environ.get("MEMBOARD_REAL_DATA", "nowhere")) / "kineto"
MORE = Path(os.environ.get("MEMBOARD_MORE_TRACES", "nowhere"))

CATEGORIES_OF_1_9 = {
    "cpu_op": "Operator",
    "user_annotation": "Operator",
    "cuda_runtime": "Runtime",
    "kernel": "Kernel",
    "gpu_memcpy": "Memcpy",
    "gpu_memset": "Memset",
}
NUM_STEPS = 3
WAITS_US = (120, 0)
"""Rank 1 comes to each collective so much later than rank 0."""


class Rank(KinetoFile):
    """Operators have ids, which their launches and kernels name, as since torch 1.9."""

    def __init__(self, rank: int) -> None:
        super().__init__(rank, world_size=2)
        self.device()
        self._id = 0

    def operator(self, name: str, ts: float, dur: float, **args: Any) -> None:
        self._id += 1
        self.slice(name, ts, dur, **{"External id": self._id, **args})

    def work(
        self, call: str, called: float, name: str, ts: float, dur: float, **args: Any
    ) -> None:
        """The last operator calls the runtime, and work runs on the device."""
        self._correlation += 1
        ids = {"External id": self._id, "correlation": self._correlation}
        self.slice(call, called, 3, "cuda_runtime", **ids)
        category = args.pop("category", "kernel")
        self.device_slice(name, ts, dur, **{"device": 0, "stream": 7, **ids, **args})
        self.events[-1]["cat"] = category


def made_rank(rank: int) -> Rank:
    """Steps of 1,000 us with all that torch-tb-profiler tells apart."""
    made = Rank(rank)
    for number in range(NUM_STEPS):
        at = 10_000 + 1_000 * number
        _step(made, number + 5, at, WAITS_US[rank])
    return made


def _step(made: Rank, number: int, at: float, wait_us: float) -> None:
    made.step(number, at, 990)
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    made.slice(loader, at, 100, "user_annotation")
    _module(made, "Net_0", at + 105, 135, 0)
    shapes = {"Input Dims": [[8, 8], [8, 8]], "Input type": ["float", "float"]}
    made.operator("aten::linear", at + 110, 90)
    made.operator("aten::mm", at + 120, 60, **shapes)
    few = {"blocks per SM": 0.5, "est. achieved occupancy %": 25, "grid": [8, 1, 1]}
    made.work(
        "cudaLaunchKernel", at + 130, "volta_sgemm_128x64_nn", at + 200, 300, **few
    )
    made.memory(at + 125, 4096, 77, 10_000 + 4096)
    _module(made, "Conv2d_0", at + 202, 36, 1)
    made.operator("aten::conv2d", at + 205, 30)
    many = {"blocks per SM": 4.0, "est. achieved occupancy %": 50, "grid": [320, 1, 1]}
    made.work(
        "cudaLaunchKernel", at + 210, "volta_h884cudnn_nhwc", at + 500, 100, **many
    )
    made.operator("aten::copy_", at + 245, 25)
    copied = {"category": "gpu_memcpy", "bytes": 4096}
    made.work(
        "cudaMemcpyAsync", at + 250, "Memcpy HtoD (Pinned -> Device)", at + 610, 20,
        **copied,
    )  # fmt: skip
    made.operator("aten::zero_", at + 275, 20)
    made.work(
        "cudaMemsetAsync", at + 280, "Memset (Device)", at + 635, 10,
        category="gpu_memset",
    )  # fmt: skip
    sent = {"Input Dims": [[1000]], "Input type": ["float"]}
    made.operator("nccl:all_reduce", at + 300, 20, **sent)
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    # It begins beside the convolution, which hides the first 40 us.
    began = at + 560 + (max(WAITS_US) - wait_us)
    described = {
        "Collective name": "allreduce",
        "In msg nelems": 1000,
        "dtype": "Float",
        "Group size": 2,
        "Process Group Name": "0",
    }
    made.work(
        "cudaLaunchKernel", at + 305, name, began, 100 + wait_us, stream=20,
        **described,
    )  # fmt: skip
    made.operator("aten::add", at + 330, 40)
    made.memory(at + 340, -4096, 77, 10_000)


def advised_rank() -> Rank:
    """Steps of 1,000 us to which torch-tb-profiler has five things to say.

    They wait 300 us for data and 150 us for a collective, a product of floats takes half of
    the kernels' time, the device idles more than half of the time and is 95 % full.
    """
    made = Rank(0)
    capacity = made.head["deviceProperties"][0]["totalGlobalMem"]
    for number in range(NUM_STEPS):
        at = 10_000 + 1_000 * number
        made.step(number, at, 990)
        loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        made.slice(loader, at, 300, "user_annotation")
        made.operator("aten::mm", at + 310, 60)
        made.work("cudaLaunchKernel", at + 320, "volta_sgemm_128x64_nn", at + 400, 200)
        made.memory(at + 330, 4096, 77 + number, capacity * 95 // 100)
        made.operator("aten::add", at + 380, 10)
        made.work("cudaLaunchKernel", at + 381, "elementwise_kernel", at + 600, 50)
        made.operator("nccl:all_reduce", at + 395, 5)
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
        made.work("cudaLaunchKernel", at + 396, name, at + 700, 150, stream=20)
    return made


def _module(made: Rank, name: str, ts: float, dur: float, number: int) -> None:
    ids = {"Python id": len(made.events), "Python module id": number}
    made.slice(f"nn.Module: {name}", ts, dur, "python_function", **ids)


def as_of_1_9(made: KinetoFile) -> KinetoFile:
    """The same events under the categories that torch 1.9 gave them."""
    for event in made.events:
        event["cat"] = CATEGORIES_OF_1_9.get(event["cat"], event["cat"])
    return made


def trained_on_cpu(folder: Path) -> None:
    """A training as torch traces it now: operators, memory, modules and stacks."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(96, 64), torch.randint(0, 8, (96,)))
    handler = torch.profiler.tensorboard_trace_handler(
        str(folder), worker_name="host_0"
    )
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=4, repeat=1),
        on_trace_ready=handler,
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_modules=True,
    ) as profiler:
        for inputs, labels in DataLoader(data, batch_size=16):
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()


MADE = ("torch_1_9", "since_1_12", "advised", "cpu")


def recorded() -> dict[str, list[tuple[Path, str]]]:
    """By folder, files and the names under which torch-tb-profiler finds them."""
    found: dict[str, list[tuple[Path, str]]] = {}
    for path in sorted(REAL.glob("*/*.pt.trace.json*")):
        found.setdefault(path.parent.name, []).append((path, path.name))
    for path in sorted(MORE.glob("*/*.json*")):
        if path.name == "expected.json":
            continue
        name = f"host_0.1.pt.trace.json{path.suffix if path.suffix == '.gz' else ''}"
        found.setdefault(path.parent.name, []).append((path, name))
    return found


FOLDERS = (*MADE, *recorded())


def these(*folders: str) -> pytest.MarkDecorator:
    """Those of the folders that are there."""
    there = [folder for folder in folders if folder in FOLDERS]
    return pytest.mark.parametrize("folder", there)


def all_but(*folders: str) -> pytest.MarkDecorator:
    return these(*(folder for folder in FOLDERS if folder not in folders))


def make(logdir: Path) -> None:
    """Write all folders."""
    for rank in range(2):
        name = f"host_{rank}.1.pt.trace.json"
        as_of_1_9(made_rank(rank)).write(logdir / "torch_1_9" / name)
        made_rank(rank).write(logdir / "since_1_12" / name)
    path = logdir / "advised" / "host_0.1.pt.trace.json"
    as_of_1_9(advised_rank()).write(path)
    trained_on_cpu(logdir / "cpu")
    for folder, files in recorded().items():
        (logdir / folder).mkdir()
        for path, name in files:
            shutil.copyfile(path, logdir / folder / name)
