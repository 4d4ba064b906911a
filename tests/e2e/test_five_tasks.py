"""Five questions of users, answered on a logdir of 17 runs, with clicks counted.

Each begins where TensorBoard opens the tab, or at the address of a run, on a screen of
1280 x 800, and reads only what is on it without scrolling.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from playwright.sync_api import expect

from memboard.collector.format.snapshots import tables_of
from tests.builders import RunBuilder
from tests.e2e.looking import PATIENCE_MS, tab
from tests.made_snapshots import long_history
from tests.simulate import oom_case
from tests.tb_plugin.planted_stragglers import Training
from tests.tb_plugin.step_runs import Story, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MIB, GIB = 1 << 20, 1 << 30
DAY_NS = 1_767_603_600 * 10**9
"""When the simulated run begins: all runs are of one day."""
STEPS = np.arange(300)
MINUTE_NS = 60 * 10**9

TRAINING = f"""
import sys
import time

ahead, now_ns = {DAY_NS} - time.time_ns(), time.time_ns
time.time_ns = lambda: now_ns() + ahead

import torch
from torch.utils.checkpoint import checkpoint

import memboard as mb


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(64, 512), torch.nn.Linear(512, 64)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


class Model(torch.nn.Module):
    def __init__(self, recomputes):
        super().__init__()
        self.layers = torch.nn.ModuleList(Block() for _ in range(4))
        self.recomputes = recomputes

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.recomputes else layer(x)
        return x


torch.set_num_threads(1)
model = Model(sys.argv[2] == "checkpointing")
optimizer = torch.optim.AdamW(model.parameters())
with mb.record(sys.argv[1], model=model, modules=True) as rec:
    for _ in range(20):
        model(torch.randn(512, 64)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        rec.step()
"""
"""A real training on the processor, with and without activation checkpointing, that day."""


def trained(
    folder: Path,
    minute: int,
    peak: float,
    per_step: float = 0.0,
    histories: tuple[int, ...] = (),
) -> None:
    """An ordinary run of two ranks on GPUs: steps, their peaks and their time.

    `histories`: how many events each history of rank 0 has.
    """
    builder = RunBuilder(folder)
    start_ns = DAY_NS + minute * MINUTE_NS
    for number in range(2):
        rng = np.random.default_rng(number)
        held = np.floor(20 * GIB + STEPS * per_step)
        rank = builder.rank(
            number, world_size=2, start_ns=start_ns, device_total_bytes=80 * GIB
        )
        rank.steps(
            STEPS,
            allocated_bytes=held,
            allocated_peak_bytes=np.floor(
                held + peak - 20 * GIB - rng.random(len(STEPS))
            ),
            step_time_seconds=0.5 + 0.01 * rng.random(len(STEPS)),
        )
        for index, num_events in enumerate(histories if number == 0 else ()):
            tables = tables_of(long_history(num_events))
            step = 100 * (index + 1)
            rank.capture("history", iteration=index, step=step, tables=tables)
        rank.close()


def straggles(folder: Path, minute: int) -> None:
    """Rank 3 of four waits for its data, in recorded steps; some were traced too."""

    def more(rank: int, _: int) -> dict[str, float]:
        return {"dataloader": 38.0} if rank == 3 else {}

    header = {"start_ns": DAY_NS + minute * MINUTE_NS}
    write(folder, Story(4, 60, in_step=True, more=more).tell(), header=header)
    Training(4).write(folder)


@pytest.fixture(scope="session")
def mixed(tmp_path_factory, simulated) -> Path:
    """A crash of 64 ranks among ordinary runs, CPU runs and snapshots of other tools."""
    logdir = tmp_path_factory.mktemp("mixed") / "runs"
    shutil.copytree(simulated, logdir)
    for number in range(7):
        trained(logdir / f"ordinary-{number}", 10 * number, (30 + number) * GIB)
    straggles(logdir / "straggles", 70)
    trained(logdir / "grows", 80, 40.0 * GIB, 5 * MIB, histories=(100, 900))
    trained(logdir / "gpu-base", 90, 40.3 * GIB)
    trained(logdir / "gpu-checkpointing", 100, 36.2 * GIB)
    for kind in ("base", "checkpointing"):
        command = [sys.executable, "-c", TRAINING, str(logdir / f"cpu-{kind}"), kind]
        subprocess.run(command, check=True, timeout=600)
    for number in range(2):
        folder = logdir / f"snapshots-{number}"
        folder.mkdir()
        snapshot = pickle.dumps(long_history(500 + number), 4)
        (folder / "rank0_memory_snapshot.pickle").write_bytes(snapshot)
    (logdir / "dumped").mkdir()
    oom_case("fragmented", 10_003).write(logdir / "dumped")
    written_s = DAY_NS / 1e9
    for path in logdir.rglob("*.pickle"):
        os.utime(path, (written_s, written_s))
    return logdir


class User:
    """Looks and clicks, and counts the clicks."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    def click(self, name: str) -> None:
        self.clicks += 1
        button = (
            tab(self.page).get_by_role("button", name=re.compile(rf"^{name}\b")).first
        )
        button.click(timeout=PATIENCE_MS)

    def reads(self, *texts: str | re.Pattern[str]) -> None:
        """Each stands on the page beside the rail, in sight without scrolling."""
        for text in texts:
            lines = tab(self.page).locator("main").get_by_text(text)
            expect(lines.first).to_be_in_viewport(timeout=PATIENCE_MS)


@pytest.fixture
def user(board_of, open_page, mixed) -> Callable[..., User]:
    """A user who opens the tab, or an address with these words."""

    def opens(**words: str) -> User:
        place = "".join(f"&p.memboard.{key}={word}" for key, word in words.items())
        url = f"{board_of(mixed).url}#memboard{place}"
        return User(open_page(url, width=1280, height=800))

    return opens


def test_a_job_died_why_which_line_and_what_to_change(user):
    someone = user()
    someone.reads("Out of memory: memory retained across steps", "rank 41")
    someone.reads("evaluate.py:52 append", "What to try")
    assert someone.clicks == 0


def test_memory_grows_where_from_and_until_when(user):
    someone = user(run="grows")
    someone.reads("Memory grows", "grows 5.00 MiB per step", "retained at m39.py:42")
    someone.reads("will be full at about step")
    assert someone.clicks == 0


def test_which_modules_activations_are_the_peak(user):
    someone = user()
    someone.click("Modules")
    someone.reads("Activations of", "layers.*")
    assert someone.clicks <= 2


def test_did_my_change_save_memory_on_gpus(user):
    someone = user()
    someone.click("gpu-checkpointing")
    someone.click("Compare")
    someone.reads("This run peaks 4.10 GiB lower than gpu-base")
    assert someone.clicks <= 2


def test_did_my_change_save_memory_on_a_processor(user):
    """Resident memory of both is that of Python and torch: tensors differ."""
    someone = user()
    someone.click("cpu-checkpointing")
    someone.click("Compare")
    lower = r"^Tensors of this run peak [\d.]+ MiB lower than those of cpu-base"
    someone.reads(re.compile(rf"{lower} .*: mostly activations of Model\.layers"))
    assert someone.clicks <= 2


def test_two_runs_are_chosen_in_the_table_of_runs(user):
    someone = user(run="gpu-base", view="compare")
    someone.click("Runs")
    row = tab(someone.page).get_by_role("row").filter(has_text="ordinary-3")
    row.click()
    someone.reads("This run peaks 7.30 GiB higher than ordinary-3")
    expect(tab(someone.page).get_by_role("button", name="A and B")).to_have_attribute(
        "aria-pressed", "true"
    )


def test_which_rank_is_the_straggler_and_what_in_it(user, mixed):
    someone = user()
    someone.reads("Straggler")
    someone.click("Time")
    someone.reads("rank 54", "in backward")
    assert someone.clicks <= 1


def test_the_straggler_is_the_same_rank_on_all_pages_and_in_the_report(user, mixed):
    for view in ("overview", "steps", "distributed"):
        someone = user(run="straggles", view=view)
        someone.reads(re.compile(r"^Rank 3 on host0\b.*in the wait for the dataloader"))
        assert someone.clicks == 0
    words = ("report", str(mixed), "--run", "straggles")
    report = subprocess.run(
        [sys.executable, "-m", "memboard.tb_plugin.cli", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Straggler; rank 3" in report.stdout
