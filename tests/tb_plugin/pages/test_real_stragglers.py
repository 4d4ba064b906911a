"""Real processes that train over gloo under torch's profiler, one of them slow."""

from __future__ import annotations

import pytest

from tests import programs
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.profiled import ask, straggler_of

pytestmark = pytest.mark.slow

SLOW_SECONDS = 0.08
EVEN_SECONDS = 0.4
"""Slept in each step where nothing is planted: what another process of a busy machine
delays is far below the share of a step that counts."""
TRAINING = """
import sys, time
import torch
import torch.distributed as dist

rank, world_size, folder, meeting, planted, late, seconds, slept = sys.argv[1:]
rank, world_size, seconds = int(rank), int(world_size), float(seconds)
is_late = rank == int(late)
torch.set_num_threads(1)
dist.init_process_group("gloo", meeting, rank=rank, world_size=world_size)


class Batches(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, number):
        time.sleep(0.01 + seconds * (is_late and planted == "input"))
        return torch.ones(64, 64)


def multiply(seconds):
    until = time.monotonic() + seconds
    x = torch.ones(256, 256)
    while time.monotonic() < until:
        x = (x @ x).clamp(0, 1)


def train(batch):
    multiply(0.01 + seconds * (is_late and planted == "compute"))
    dist.all_reduce(batch)
    if is_late and planted == "collective":
        time.sleep(seconds)
    dist.all_gather([torch.empty_like(batch) for _ in range(world_size)], batch)
    time.sleep(float(slept))
    dist.barrier()


loader = iter(torch.utils.data.DataLoader(Batches(), batch_size=None))
train(next(loader))  # connections are made
dist.barrier()
activities = [torch.profiler.ProfilerActivity.CPU]
schedule = torch.profiler.schedule(wait=0, warmup=1, active=7)
with torch.profiler.profile(activities=activities, schedule=schedule) as profiler:
    for _ in range(8):
        train(next(loader))
        if profiler.step_num < 7:
            profiler.step()
profiler.export_chrome_trace(f"{folder}/host_{rank}.1.pt.trace.json")
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    ("num_ranks", "planted", "late", "part"),
    [
        (2, "compute", 1, "computation"),
        (2, "input", 0, "the wait for the dataloader"),
        (2, "collective", 1, "work outside operators"),
        (4, "compute", 2, "computation"),
        (4, "nothing", -1, ""),
        (2, "nothing", -1, ""),
    ],
)
def test_the_slow_process_is_named_and_no_other(
    tmp_path, num_ranks, planted, late, part
):
    pytest.importorskip("torch.distributed")
    run = tmp_path / "runs" / "exp"
    run.mkdir(parents=True)
    meeting = (tmp_path / "meeting").as_uri()
    slept = 0.02 if late >= 0 else EVEN_SECONDS
    ranks = [
        programs.Program(
            TRAINING, rank, num_ranks, run, meeting, planted, late, SLOW_SECONDS, slept
        )
        for rank in range(num_ranks)
    ]
    for rank in ranks:
        _, errors = rank.communicate()
        assert rank.returncode == 0, errors[-2000:]
    page = Page(tmp_path / "runs")
    assert straggler_of(page) == (late if late >= 0 else None)
    answer = ask(page, "distributed")
    if late < 0:
        assert answer["sentence"].startswith("No rank stands out. ")
        return
    (finding,) = answer["findings"]
    assert f"Rank {late} takes longer in {part}." in finding["sentence"]
