"""Out-of-memory errors of a real device: provoked, reported, captured, survived.

`set_per_process_memory_fraction` makes them quick. With MEMBOARD_GPU_OUT set, the rank
files are left there as well.
"""

# ruff: noqa: PT012  # what fails, and where, is what is tested

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import memboard as mb
from memboard.collector.format import oom
from memboard.collector.format.memory import CATEGORIES
from memboard.collector.format.snapshots import rebuilt
from tests.gpu.conftest import GPU_OUT
from tests.recordings import read_run

torch = pytest.importorskip("torch")

MIB = 1 << 20
LIMIT = 2 << 30


@pytest.fixture(autouse=True)
def _small_device(limit_torch):
    limit_torch(LIMIT)


def keep(run_dir: Path, name: str) -> None:
    if GPU_OUT:
        shutil.copytree(run_dir, Path(GPU_OUT, name), dirs_exist_ok=True)


def captures(run_dir, kind):
    return [c for c in read_run(run_dir)[0].captures if c.kind == kind]


def fill(chunks, size=64 * MIB):
    while True:
        chunks.append(torch.empty(size, dtype=torch.uint8, device="cuda"))


def test_an_error_that_ends_the_program(tmp_path):
    chunks: list = []
    with (
        pytest.raises(torch.OutOfMemoryError) as raised,
        mb.record(tmp_path) as rec,
    ):
        rec.step()
        with rec.span("filling"):
            fill(chunks)
    keep(tmp_path, "oom-full")
    (report,) = captures(tmp_path, oom.KIND)
    meta = report.meta
    assert meta["origin"] == "oom"
    assert (meta["device_type"], meta["device"]) == ("cuda", 0)
    assert meta["requested_bytes"] == 64 * MIB
    assert meta["spans"] == ["filling"]
    assert meta["device_limit_bytes"] == pytest.approx(LIMIT, rel=0.01)
    memory = meta["memory"]
    assert memory["allocated_bytes"] >= len(chunks) * 64 * MIB
    assert memory["reserved_bytes"] <= meta["device_limit_bytes"]
    used = meta["device_total_bytes"] - meta["device_free_bytes"]
    assert meta["other_bytes"] == used - memory["reserved_bytes"]
    assert meta["history"]["recording"] == "ours"
    held = report.tables["holders"]["num_bytes"]
    assert held[0] >= 0.95 * memory["allocated_bytes"]
    names = report.tables["holder_frames"]["name"]
    assert any("fill" in name for name in names)
    assert any("fill" in name for name in report.tables["stack"]["name"])
    (history,) = captures(tmp_path, "history")
    assert history.meta["report"] == meta["report"]
    snapshot = rebuilt(history.tables)
    events = [e for trace in snapshot["device_traces"] for e in trace]
    assert [e["size"] for e in events if e["action"] == "oom"] == [64 * MIB]
    live = sum(s["allocated_size"] for s in snapshot["segments"])
    assert live == memory["allocated_bytes"]  # taken before anything was freed
    notes = read_run(tmp_path)[0].notes_of("oom_message")
    assert notes[0].data["message"] == str(raised.value)


def test_of_errors_that_are_caught_the_first_are_reported(tmp_path):
    with mb.record(tmp_path) as rec:
        for _ in range(20):
            chunks: list = []
            with pytest.raises(torch.OutOfMemoryError):
                fill(chunks)
            del chunks
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(4 * LIMIT, dtype=torch.uint8, device="cuda")
        rec.step()
    reports = captures(tmp_path, oom.KIND)
    assert len(reports) == 3
    assert read_run(tmp_path)[0].close.how == "closed"


def test_in_backward_the_main_threads_stack_and_spans_are_known(tmp_path):
    class Greedy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            torch.empty(4 * LIMIT, dtype=torch.uint8, device="cuda")
            return gradient

    x = torch.ones(8, device="cuda", requires_grad=True)
    with pytest.raises(torch.OutOfMemoryError), mb.record(tmp_path) as rec:  # noqa: SIM117
        with rec.span("backward"):
            Greedy.apply(x).sum().backward()
    (report,) = captures(tmp_path, oom.KIND)
    assert report.meta["spans"] == ["backward"]
    stack = report.tables["stack"]
    main = [n for n, t in zip(stack["name"], stack["thread"], strict=True) if t == 1]
    assert any("test_in_backward" in name for name in main)


def test_tensors_are_found_among_the_blocks_and_unknown_is_little(tmp_path):
    model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    with (
        pytest.raises(torch.OutOfMemoryError),
        mb.record(tmp_path, model=model, optimizer=optimizer) as rec,
    ):
        for _ in range(3):
            model(torch.randn(256, 1024, device="cuda")).sum().backward()
            optimizer.step()
            rec.step()
        torch.empty(4 * LIMIT, dtype=torch.uint8, device="cuda")
    keep(tmp_path, "oom-tensors")
    (history,) = captures(tmp_path, "history")
    table, blocks = history.tables["tensors"], history.tables["blocks"]
    addresses = set(blocks["address"].tolist())
    names = {CATEGORIES[code] for code in table["category"].tolist()}
    assert names >= {"param", "grad", "optimizer"}
    on_device = table["device"] >= 0
    assert set(table["address"][on_device].tolist()) <= addresses
    strings = history.tables["strings"]["text"]
    active = [strings[row] == "active_allocated" for row in blocks["state"].tolist()]
    live = sum(blocks["size"][active].tolist())
    # What cuBLAS works in is no tensor: torch allocates it for each handle and stream.
    before = torch.cuda.memory_allocated()
    torch._C._cuda_clearCublasWorkspaces()
    live -= before - torch.cuda.memory_allocated()
    assert table["num_bytes"][on_device].sum() >= 0.9 * live


def test_the_observer_is_one_and_the_users_own_history_stays(tmp_path):
    torch.cuda.memory._record_memory_history(stacks="python", max_entries=500)
    for number in range(3):
        with mb.record(tmp_path / str(number)):
            pass
    with (
        pytest.raises(torch.OutOfMemoryError),
        mb.record(tmp_path / "last"),
    ):
        fill([])
    assert len(captures(tmp_path / "last", oom.KIND)) == 1
    (history,) = captures(tmp_path / "last", "history")
    assert history.meta["recording"] == "program"
    kept = torch.empty(1000, device="cuda")
    assert sum(map(len, torch.cuda.memory._snapshot()["device_traces"])) > 0
    del kept


def test_watching_starts_no_device():
    import subprocess
    import sys

    code = """
import memboard as mb, torch, tempfile
with mb.record(tempfile.mkdtemp()) as rec:
    rec.step()
    assert not torch.cuda.is_initialized()
    kept = torch.empty(1 << 20, device="cuda")
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    assert any(e["action"] == "alloc" and e["frames"] for e in events), events
"""
    subprocess.run([sys.executable, "-c", code], check=True)
