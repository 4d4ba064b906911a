"""Processes and ranks that share devices, and data that comes back from one."""

from __future__ import annotations

import json
import subprocess

from memboard.collector.virtual.accounting import read_accounting
from memboard.collector.virtual.devices import parse_device
from memboard.collector.virtual.environment import environment
from tests.virtual.running import python

MIB = 1 << 20

HOLDER = """
import os, sys, torch
x = torch.empty(3 << 30, dtype=torch.uint8, device="cuda")
print(os.getpid(), flush=True)
sys.stdin.read()
"""


def test_processes_share_a_device(on_gpu):
    accounting = on_gpu.new_accounting()
    variables = environment(
        parse_device("24GiB,8.9"),
        python=python(),
        accounting=accounting,
        context_bytes=100 * MIB,
    )
    with subprocess.Popen(
        [python(), "-c", HOLDER],
        env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as holder:  # fmt: skip
        assert holder.stdout
        pid = int(holder.stdout.readline())
        said = on_gpu(
            """
            import pynvml
            x = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
            free, total = torch.cuda.mem_get_info()
            out["used"] = (total - free) >> 20
            pynvml.nvmlInit()
            device = pynvml.nvmlDeviceGetHandleByIndex(0)
            out["nvml"] = pynvml.nvmlDeviceGetMemoryInfo(device).used >> 20
            out["users"] = {p.pid: p.usedGpuMemory >> 20
                            for p in pynvml.nvmlDeviceGetComputeRunningProcesses(device)}
            out["self"] = os.getpid()
            try:
                torch.empty(21 << 30, dtype=torch.uint8, device="cuda")
            except torch.OutOfMemoryError as error:
                out["words"] = str(error)
            """,
            "24GiB,8.9",
            accounting=accounting,
            context_bytes=100 * MIB,
        )
        holder.kill()
    assert said["used"] == said["nvml"] == 3172 + 1124
    assert said["users"] == {str(pid): 3172, str(said["self"]): 1124}
    assert f"Process {pid} has 3.10 GiB memory in use" in said["words"]
    after = on_gpu(
        "out['used'] = [t - f for f, t in [torch.cuda.mem_get_info()]]",
        "24GiB,8.9",
        accounting=accounting,
        context_bytes=100 * MIB,
    )
    assert after["used"] == [100 * MIB]
    peaks = {one.pid: one.peak for one in read_accounting(accounting).processes}
    assert peaks[pid] == {0: 3172 * MIB}


def test_contexts_are_only_where_something_is(on_gpu):
    said = on_gpu(
        """
        torch.empty(1, device="cuda:1")
        out["used"] = [t - f for f, t in map(torch.cuda.mem_get_info, (1,))]
        out["count"] = torch.cuda.device_count()
        import pynvml
        pynvml.nvmlInit()
        first = pynvml.nvmlDeviceGetHandleByIndex(0)
        out["first"] = pynvml.nvmlDeviceGetMemoryInfo(first).used
        """,
        devices=2,
        context_bytes=50 * MIB,
    )
    assert said == {"used": [52 * MIB], "count": 2, "first": 0}


def test_small_data_survives_until_it_is_written(on_gpu):
    said = on_gpu(
        """
        x = torch.arange(10).cuda()
        out["slices"] = [x.tolist(), x[3:5].tolist(), x[2].item()]
        y = torch.empty(20, dtype=torch.long, device="cuda")
        y[5:15].copy_(x)
        out["copied"] = y[5:15].tolist()
        out["cloned"] = x.clone().tolist()
        out["read"] = [(x > 3).tolist(), torch.cat([x, x])[0].item(), x.tolist()]
        x.add_(1)
        out["written"] = x.tolist()
        pinned = torch.tensor([1.0, 2.0]).pin_memory().cuda(non_blocking=True)
        out["pinned"] = pinned.tolist()
        """
    )
    known = list(range(10))
    assert said["slices"] == [known, [3, 4], 2]
    assert said["copied"] == said["cloned"] == known
    # Kernels compute nothing, but reading does not spoil.
    assert said["read"] == [[False] * 10, 0, known]
    assert said["written"] == [0] * 10
    assert said["pinned"] == [1.0, 2.0]


def test_reads_of_values_that_are_not_real_are_told(on_gpu):
    said = on_gpu(
        """
        import ctypes
        told = []
        callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)(
            lambda at, size: told.append(size))
        core = ctypes.CDLL("libmemboard_vgpu.so")
        core.memboard_vgpu_on_read(callback)
        known = torch.tensor([1, 2], device="cuda")
        known.tolist()
        (known + 1).tolist()
        core.memboard_vgpu_on_read(None)
        known.sum().item()
        out["told"] = told
        """
    )
    assert said["told"] == [16]


ONE_RANK = """
import torch.distributed as dist

class Alone(dist.Store):
    def __init__(self):
        super().__init__()
        self.values = {}
    def set(self, key, value):
        self.values[key] = value.encode() if isinstance(value, str) else bytes(value)
    def get(self, key):
        return self.values.get(key, bytes(128))
    def add(self, key, n):
        self.values[key] = str(int(self.values.get(key, b"0")) + n).encode()
        return int(self.values[key])
    def check(self, keys):
        return all(key in self.values for key in keys)
    def wait(self, *_):
        pass
    def delete_key(self, key):
        return self.values.pop(key, None) is not None

store = Alone()
dist.init_process_group("nccl", rank=1, world_size=4, store=store)
total = torch.tensor([5, 7], device="cuda")
dist.all_reduce(total)
out["total"] = total.tolist()
slots = [torch.empty(2, device="cuda") for _ in range(4)]
dist.all_gather(slots, torch.tensor([1.0, 7.0], device="cuda"))
out["slots"] = [slot.tolist() for slot in slots]
part = torch.empty(1, device="cuda")
dist.reduce_scatter_tensor(part, torch.tensor([1.0, 2.0, 3.0, 4.0], device="cuda"))
out["part"] = part.tolist()
objects = [None] * 4
dist.all_gather_object(objects, {"name": "run", "shape": [1, 2]})
out["objects"] = objects
dist.barrier()
"""


def test_one_rank_of_four_agrees_with_itself(on_gpu):
    said = on_gpu(ONE_RANK)
    assert said["total"] == [20, 28]
    assert said["slots"] == [[1.0, 7.0]] * 4
    assert said["part"] == [8.0]
    assert said["objects"] == [{"name": "run", "shape": [1, 2]}] * 4


def test_ddp_and_fsdp_train_as_one_rank_of_four(on_gpu):
    said = on_gpu(
        ONE_RANK
        + """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
layers = lambda: torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(4))).cuda()
whole = torch.nn.parallel.DistributedDataParallel(layers())
whole(torch.randn(4, 512, device="cuda")).sum().backward()
del whole
before = torch.cuda.memory_allocated()
sharded = layers()
out["whole"] = torch.cuda.memory_allocated() - before
for layer in sharded:
    fully_shard(layer, mesh=init_device_mesh("cuda", (4,)))
fully_shard(sharded)
optimizer = torch.optim.AdamW(sharded.parameters())
sharded(torch.randn(4, 512, device="cuda")).sum().backward()
optimizer.step()
out["shard"] = sum(p.to_local().numel() * 4 for p in sharded.parameters())
"""
    )
    assert said["shard"] * 4 == said["whole"]


def test_calls_that_nobody_wrote_are_listed(on_gpu):
    accounting = on_gpu.new_accounting()
    on_gpu(
        """
        import ctypes
        runtime = ctypes.CDLL(torch.__file__ and "libcudart.so." + torch.version.cuda[:2])
        for _ in range(3):
            runtime.cudaGraphKernelNodeCopyAttributes(None, None)
        a = torch.randn(8, 8, device="cuda"); a @ a
        """,
        accounting=accounting,
    )
    calls = {one.name: one for one in read_accounting(accounting).calls}
    assert calls["cudaGraphKernelNodeCopyAttributes"].count == 3
    assert [one.name for one in calls.values() if not one.known] == [
        "cudaGraphKernelNodeCopyAttributes"
    ]
    assert json.dumps([one.library for one in calls.values() if one.known])
