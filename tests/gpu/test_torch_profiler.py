"""Traces of a real device: kernels, device times and memory, one cycle after the other."""

from __future__ import annotations

import json

import numpy as np
import pytest

import memboard as mb
from memboard.collector.virtual.current_device import virtual_device
from tests.collector.torch_profiler.training import artifacts, recording, traces

torch = pytest.importorskip("torch")

SIZE = 1024


class Training:
    """Products that keep a device busy for a while."""

    def __init__(self):
        self.net = torch.nn.Sequential(
            *(torch.nn.Linear(SIZE, SIZE) for _ in range(4))
        ).cuda()
        self.optimizer = torch.optim.AdamW(self.net.parameters())

    def step(self):
        self.optimizer.zero_grad()
        self.net(torch.randn(SIZE, SIZE, device="cuda")).sum().backward()
        self.optimizer.step()


def train(run_dir, steps=9, **settings):
    training = Training()
    with mb.record(
        run_dir,
        scalars=False,
        schedule={"wait": 1, "warmup": 1, "active": 2, "repeat": 0},
        torch_profiler={"enabled": True, **settings},
    ) as recorder:
        for _ in range(steps):
            training.step()
            recorder.step()
    return recorder


NO_KERNELS = pytest.mark.needs_real_gpu("no kernels in traces")


@NO_KERNELS
def test_every_cycle_has_its_kernels(tmp_path):
    train(tmp_path)
    found = artifacts(tmp_path)
    assert len(found) == 2
    for path in found.values():
        events = json.loads(path.read_text())["traceEvents"]
        kernels = [e for e in events if e.get("cat") == "kernel"]
        assert len(kernels) >= 2 * 3 * 4


@NO_KERNELS
def test_device_time_is_that_of_the_traces_kernels(tmp_path):
    train(tmp_path, steps=4)
    (path,) = artifacts(tmp_path).values()
    events = json.loads(path.read_text())["traceEvents"]
    busy_us = sum(
        e["dur"]
        for e in events
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    )
    (capture,) = traces(tmp_path)
    table = capture.tables["operators"]
    total_us = int(np.sum(table["self_device_ns"])) / 1000
    assert total_us == pytest.approx(busy_us, rel=0.01)
    launched = sum(
        device
        for name, device in zip(table["name"], table["self_device_ns"], strict=True)
        if name in ("aten::addmm", "aten::mm")
    )
    assert launched > 0.3 * np.sum(table["self_device_ns"])
    assert "by self device" in capture.meta["summary"]
    # Forward 4 products, backward 7: the first layer's input needs no gradient.
    assert capture.meta["flops"] == pytest.approx(2 * 11 * 2 * SIZE**3, rel=0.01)


@NO_KERNELS
def test_kernels_lie_within_their_steps_on_the_wall_clock(tmp_path):
    train(tmp_path, steps=4)
    (path,) = artifacts(tmp_path).values()
    trace = json.loads(path.read_text())
    base = trace.get("baseTimeNanoseconds", 0)
    (capture,) = traces(tmp_path)
    for event in trace["traceEvents"]:
        if event.get("cat") == "kernel":
            begun = base + event["ts"] * 1000
            assert capture.meta["start_ns"] - 5e6 < begun
            # Those of the last step end while torch waits for the device.
            assert begun < capture.meta["end_ns"] + 1e9


def test_memory_by_category_is_that_of_the_device(tmp_path):
    train(
        tmp_path,
        steps=4,
        record_shapes=True,
        with_stack=True,
        memory_filename="m.csv",
    )
    (capture,) = traces(tmp_path)
    assert capture.meta["problem"] == ""
    table = capture.tables["memory_timeline"]
    on_device = np.array([device.startswith("cuda") for device in table["device"]])
    assert on_device.any()
    params = 4 * (SIZE * SIZE + SIZE) * 4
    assert max(np.asarray(table["param_bytes"])[on_device]) >= params
    assert max(np.asarray(table["optimizer_bytes"])[on_device]) >= 2 * params
    found = artifacts(tmp_path)
    assert "cuda:0" in found["m.csv"].read_text()


@NO_KERNELS
def test_stacks_by_device_time_have_what_launched_kernels(tmp_path):
    train(
        tmp_path,
        steps=4,
        with_stack=True,
        stacks_filename="s.txt",
        stacks_metric="self_device",
    )
    assert "aten::addmm" in artifacts(tmp_path)["s.txt"].read_text()


def test_cycles_and_steps_are_traced_with_the_devices_activities(tmp_path):
    train(tmp_path)
    assert len(artifacts(tmp_path)) == 2
    for path in artifacts(tmp_path).values():
        events = json.loads(path.read_text())["traceEvents"]
        names = {e["name"] for e in events if e.get("cat") == "user_annotation"}
        assert sum(name.startswith("ProfilerStep#") for name in names) == 2
    for capture in traces(tmp_path):
        assert capture.meta["activities"] == ["cpu", "cuda"]
        assert capture.meta["problem"] == ""


def test_the_programs_own_profiler_of_the_device_comes_first(tmp_path):
    training = Training()
    with mb.record(
        tmp_path,
        scalars=False,
        schedule={"wait": 1, "warmup": 1, "active": 4, "repeat": 1},
        torch_profiler=True,
    ) as recorder:
        for number in range(8):
            if number == 4:
                with torch.profiler.profile() as own:
                    training.step()
                keys = [event.key.lower() for event in own.key_averages()]
                assert "aten::addmm" in keys
                assert any("gemm" in key for key in keys) or virtual_device()
            training.step()
            recorder.step()
    (capture,) = traces(tmp_path)
    assert "took over" in capture.meta["problem"]
    assert recording(tmp_path).steps() == list(range(8))
