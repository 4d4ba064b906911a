"""Steps, peaks and categories of a recorded training, byte by byte against torch."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import memboard as mb
from memboard.collector.format.memory import CATEGORIES
from memboard.tb_plugin.analysis.allocator.live import live_rows
from memboard.tb_plugin.analysis.categories.attribution import attribution
from tests.collector.recordings import read_only_file
from tests.gpu.test_snapshots import of_device
from tests.recordings import read_run

torch = pytest.importorskip("torch")

NUM_STEPS = 5
WIDTH = 768


@pytest.fixture(autouse=True)
def _empty():
    torch.cuda.memory._record_memory_history(enabled=None)
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    yield
    torch.cuda.memory._record_memory_history(enabled=None)


class Training:
    """Steps of different lengths."""

    def __init__(self) -> None:
        layers = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(4)]
        self.net = torch.nn.Sequential(*layers).cuda()
        self.optimizer = torch.optim.AdamW(self.net.parameters())

    def step(self, number: int) -> None:
        batch = torch.randn(256 * (1 + number % 3), WIDTH, device="cuda")
        self.net(batch).square().mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    @property
    def param_bytes(self) -> int:
        return sum(one.nbytes for one in self.net.parameters())

    @property
    def optimizer_bytes(self) -> int:
        states = self.optimizer.state.values()
        return sum(t.nbytes for state in states for t in state.values() if t.is_cuda)


def test_each_steps_peak_and_end_are_those_without_a_recorder(tmp_path):
    def of_torch():
        training = Training()
        for number in range(NUM_STEPS):
            torch.cuda.reset_peak_memory_stats()
            training.step(number)
            stats = torch.cuda.memory_stats()
            yield tuple(
                stats[f"{name}_bytes.all.{figure}"]
                for name in ("allocated", "active", "reserved")
                for figure in ("current", "peak")
            )

    expected = list(of_torch())
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    training = Training()
    with mb.record(tmp_path, model=training.net) as rec:
        for number in range(NUM_STEPS):
            training.step(number)
            rec.step()
    recording = read_only_file(tmp_path)
    columns = [
        recording.column(f"{name}{infix}_bytes")
        for name in ("allocated", "active", "reserved")
        for infix in ("", "_peak")
    ]
    assert list(zip(*columns, strict=True)) == expected


def test_what_a_capture_holds_by_category(tmp_path):
    training = Training()
    requested = allocated = 0
    with mb.record(
        tmp_path,
        model=training.net,
        optimizer=training.optimizer,
        history=True,
        schedule={"warmup": NUM_STEPS - 2},
    ) as rec:
        for number in range(NUM_STEPS - 1):
            training.step(number)
            stats = torch.cuda.memory_stats()
            requested = stats["requested_bytes.all.current"]
            allocated = stats["allocated_bytes.all.current"]
            rec.step()
    captures = [c for c in read_run(tmp_path)[0].captures if c.kind == "history"]
    assert [c.context for c in captures] == ["start", "end"]
    replay = of_device(captures[-1].tables)
    lives, last = replay.lives, replay.num_events - 1
    category = attribution(replay).category
    rows = live_rows(lives, last)
    held = {
        name: int(lives.size[rows][category[rows] == number].sum())
        for number, name in enumerate(CATEGORIES)
    }
    assert sum(held.values()) == requested
    assert replay.at(last).segments.allocated_size.sum() == allocated
    assert held["param"] == training.param_bytes
    assert held["optimizer"] == training.optimizer_bytes == 2 * training.param_bytes
    assert held["grad"] == 0
    grads = np.flatnonzero(category == CATEGORIES.index("grad"))
    steps = np.concatenate([lives.born[grads], lives.freed[grads]])
    sizes = np.concatenate([lives.size[grads], -lives.size[grads]])
    order = np.argsort(steps, kind="stable")
    assert int(sizes[order].cumsum().max()) == training.param_bytes
