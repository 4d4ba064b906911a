"""torch's own allocator on a virtual GPU: what it takes, gives back, and runs out of."""

from __future__ import annotations

import json
import subprocess

import pytest

from memboard.collector.virtual.devices import DEVICES, parse_device
from memboard.collector.virtual.environment import environment
from tests.virtual.running import python

GIB = 1 << 30


@pytest.mark.parametrize("key", ["h100", "l4", "v100", "rtx5090"])
def test_a_device_has_the_properties_of_its_kind(on_gpu, key):
    said = on_gpu(
        """
        p = torch.cuda.get_device_properties(0)
        out["is"] = [p.name, p.total_memory, p.major, p.minor, p.multi_processor_count,
                     p.L2_cache_size, p.max_threads_per_multi_processor, p.warp_size,
                     p.shared_memory_per_multiprocessor]
        """,
        key,
    )
    device = DEVICES[key]
    shared = device.architecture.shared_per_sm
    assert said["is"] == [
        device.name,
        device.memory_bytes,
        *device.capability,
        device.multiprocessors,
        device.l2_bytes,
        device.architecture.threads_per_sm,
        32,
        shared,
    ]


def test_training_fills_and_empties_the_device(on_gpu):
    said = on_gpu(
        """
        free, total = torch.cuda.mem_get_info()
        model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(),
                                    torch.nn.Linear(2048, 512)).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(2):
            with torch.autocast("cuda", torch.bfloat16):
                loss = model(torch.randn(64, 512, device="cuda")).sum()
            loss.backward(); optimizer.step(); optimizer.zero_grad()
        out["parameters"] = sum(p.numel() for p in model.parameters()) * 4
        out["allocated"] = torch.cuda.memory_allocated()
        out["reserved"] = torch.cuda.memory_reserved()
        out["taken"] = free - torch.cuda.mem_get_info()[0]
        del model, optimizer, loss
        torch._C._cuda_clearCublasWorkspaces(); torch.cuda.empty_cache()
        out["left"] = free - torch.cuda.mem_get_info()[0]
        """
    )
    assert said["allocated"] > 3 * said["parameters"]
    assert said["taken"] == said["reserved"]
    assert said["left"] == 0


RUN_OUT = """
held = []
try:
    while True:
        held.append(torch.empty(3 << 30, dtype=torch.uint8, device="cuda"))
except torch.OutOfMemoryError as error:
    out["words"] = str(error)
out["held"] = len(held)
del held[::2]
out["again"] = torch.empty(6 << 30, dtype=torch.uint8, device="cuda").numel()
"""


def test_running_out_is_torchs_own_error(on_gpu):
    said = on_gpu(RUN_OUT, "24GiB,8.9", context_bytes=1 << 28)
    assert said["held"] == 7
    assert "GPU 0 has a total capacity of 24.00 GiB" in said["words"]
    # NVML's figure: three GiB seven times, and the context.
    assert "this process has 21.25 GiB memory in use" in said["words"]
    assert said["again"] == 6 * GIB


@pytest.mark.parametrize(
    "setting", ["expandable_segments:True", "backend:cudaMallocAsync"]
)
def test_settings_of_the_allocator(setting, tmp_path):
    program = """
import json, torch
out = {}
MIB = 1 << 20
free = torch.cuda.mem_get_info()[0]
a = [torch.empty(30 * MIB, dtype=torch.uint8, device="cuda") for _ in range(4)]
out["backend"] = torch.cuda.get_allocator_backend()
out["reserved"] = torch.cuda.memory_reserved() // MIB
out["taken"] = (free - torch.cuda.mem_get_info()[0]) // MIB
del a; torch.cuda.empty_cache()
out["left"] = (free - torch.cuda.mem_get_info()[0]) // MIB
try:
    torch.empty(25 << 30, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError:
    out["ran_out"] = True
print(json.dumps(out))
"""
    variables = environment(
        parse_device("24GiB,8.9"), python=python(), accounting=tmp_path / "accounting"
    )
    variables["PYTORCH_CUDA_ALLOC_CONF"] = setting
    done = subprocess.run(
        [python(), "-c", program],
        env=variables, capture_output=True, text=True, check=True,
    )  # fmt: skip
    said = json.loads(done.stdout)
    assert said["reserved"] == said["taken"]
    assert 120 <= said["reserved"] <= 160
    assert said["left"] == 0
    assert said["ran_out"]
    assert (said["backend"] == "cudaMallocAsync") == ("Async" in setting)


def test_graphs_have_pools_of_their_own(on_gpu):
    said = on_gpu(
        """
        a = torch.randn(1000, 1000, device="cuda")
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            (a @ a).relu()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            b = a @ a
        graph.replay(); torch.cuda.synchronize()
        pools = {tuple(s["segment_pool_id"]) for s in torch.cuda.memory_snapshot()}
        out["own"] = tuple(graph.pool()) in pools
        out["pools"] = len(pools)
        try:
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                a.sum().item()
        except RuntimeError as error:
            out["words"] = str(error)
        out["after"] = torch.ones(3, device="cuda").sum().item()
        """
    )
    assert said["own"]
    assert said["pools"] == 2
    assert "capture" in said["words"]


LIBRARIES = """
import warnings
a = torch.randn(64, 64, device="cuda"); half = a.half(); bias = a[0].clone()
b = torch.empty_like(a)
image = torch.randn(1, 3, 8, 8, device="cuda"); kernel = torch.randn(4, 3, 3, 3, device="cuda")
work = {
    "nothing": lambda: None,
    "memory": lambda: torch.empty_like(a),
    "handle": torch.cuda.current_blas_handle,
    "gemm": lambda: torch.mm(a, a, out=b),
    "half": lambda: half @ half,
    "batched": lambda: torch.bmm(a[None], a[None]),
    "biased": lambda: F.linear(a, a, bias),
    "convolution": lambda: F.conv2d(image, kernel),
    "transform": lambda: torch.fft.fft(a),
}
for name, call in work.items():
    call()
    torch.cuda.synchronize()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            call()
    out[name] = any("Graph is empty" in str(one.message) for one in said)
outer, inner = torch.cuda.Stream(), torch.cuda.Stream()
graphs = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    with torch.cuda.stream(outer):
        graphs[0].capture_begin(capture_error_mode="thread_local")
        with torch.cuda.stream(inner):
            graphs[1].capture_begin(capture_error_mode="thread_local")
            graphs[1].capture_end()
        out["inner"] = bool(said)
        said.clear()
        torch.mm(a, a, out=b)
        graphs[0].capture_end()
        out["outer"] = bool(said)
"""


def test_what_nvidias_libraries_do_is_work_of_the_graph(on_gpu):
    said = on_gpu(LIBRARIES)
    empty = {name for name, is_empty in said.items() if is_empty}
    assert empty == {"nothing", "memory", "handle", "inner"}
    assert len(said) == 11


PENDING = """
side = torch.cuda.Stream()
x = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
x.record_stream(side)
with torch.cuda.stream(side):
    x.add_(1)
del x
y = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
out["reserved"] = torch.cuda.memory_reserved() >> 30
torch.cuda.synchronize()
z = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
out["after"] = torch.cuda.memory_reserved() >> 30
"""


@pytest.mark.parametrize(("events", "reserved"), [("at-once", 1), ("at-sync", 2)])
def test_events_of_side_streams_complete_as_asked(on_gpu, events, reserved):
    said = on_gpu(PENDING, variables={"MEMBOARD_VIRTUAL_EVENTS": events})
    assert said == {"reserved": reserved, "after": 2}


def test_operators_of_nvidias_libraries_run(on_gpu):
    said = on_gpu(
        """
        nn = torch.nn
        x = torch.randn(4, 3, 64, 64, device="cuda", requires_grad=True)
        net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
                            nn.ConvTranspose2d(16, 8, 2, 2)).cuda()
        y = net(x); y.sum().backward()
        out["convolution"] = [list(y.shape), list(x.grad.shape)]
        rnn = nn.LSTM(32, 64, 2, bidirectional=True).cuda()
        y, _ = rnn(torch.randn(50, 4, 32, device="cuda")); y.sum().backward()
        out["lstm"] = list(y.shape)
        q = torch.randn(2, 8, 256, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
        a = torch.randn(64, 64, device="cuda")
        torch.linalg.svd(a); torch.linalg.eigh(a); torch.linalg.qr(a); torch.fft.fft2(a)
        torch.sort(a); torch.topk(a, 3); (a.to_sparse() @ a)
        out["done"] = True
        """
    )
    assert said["convolution"] == [[4, 8, 128, 128], [4, 3, 64, 64]]
    assert said["lstm"] == [50, 4, 128]
    assert said["done"]


def test_what_has_no_cpu_side_is_a_clear_crash(tmp_path):
    """Memory of the device cannot be touched by the host, not even by mistake."""
    program = (
        "import ctypes, torch\n"
        "print('up', flush=True)\n"
        "ctypes.string_at(torch.empty(8, device='cuda').data_ptr(), 8)\n"
    )
    variables = environment(
        parse_device("t4"), python=python(), accounting=tmp_path / "accounting"
    )
    done = subprocess.run(
        [python(), "-c", program],
        env=variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "up\n"
    assert done.returncode == -11
