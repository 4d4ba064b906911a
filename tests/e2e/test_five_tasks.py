"""Five questions of users, answered on a logdir of 15 runs, with clicks counted.

Each begins where TensorBoard opens the tab, and reads only what is on the screen.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.builders import RunBuilder
from tests.e2e.looking import PATIENCE_MS, tab
from tests.made_snapshots import long_history
from tests.simulate import oom_case

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


def trained(folder: Path, minute: int, peak: float, per_step: float = 0.0) -> None:
    """An ordinary run of two ranks: steps, their peaks and their time, nothing else."""
    builder = RunBuilder(folder)
    start_ns = DAY_NS + minute * MINUTE_NS
    for number in range(2):
        rng = np.random.default_rng(number)
        held = np.floor(20 * GIB + STEPS * per_step)
        rank = builder.rank(number, world_size=2, start_ns=start_ns)
        rank.steps(
            STEPS,
            allocated_bytes=held,
            allocated_peak_bytes=np.floor(
                held + peak - 20 * GIB - rng.random(len(STEPS))
            ),
            step_time_seconds=0.5 + 0.01 * rng.random(len(STEPS)),
        )
        rank.close()


@pytest.fixture(scope="session")
def mixed(tmp_path_factory, simulated) -> Path:
    """15 runs: a crash of 64 ranks among ordinary runs and snapshots of other tools."""
    logdir = tmp_path_factory.mktemp("mixed") / "runs"
    shutil.copytree(simulated, logdir)
    for number in range(8):
        trained(logdir / f"ordinary-{number}", 10 * number, (30 + number) * GIB)
    trained(logdir / "grows", 80, 40.0 * GIB, 5 * MIB)
    trained(logdir / "baseline", 90, 40.3 * GIB)
    trained(logdir / "checkpointing", 100, 36.2 * GIB)
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
        found = (
            tab(self.page).get_by_role("button", name=re.compile(rf"^{name}\b")).first
        )
        found.click(timeout=PATIENCE_MS)

    def reads(self, *words: str) -> None:
        """All of it is on the screen, without scrolling."""
        for text in words:
            found = tab(self.page).get_by_text(text).first
            expect(found).to_be_in_viewport(timeout=PATIENCE_MS)


@pytest.fixture
def user(board_of, open_page, mixed) -> Callable[[], User]:
    return User(open_page(f"{board_of(mixed).url}#memboard"))


def test_a_job_died_why_which_line_and_what_to_change(user):
    user.reads("Out of memory: memory retained across steps", "rank 41")
    user.reads("evaluate.py:52 append", "What to try")
    assert user.clicks == 0


def test_memory_grows_by_5_mib_a_step_until_when(user):
    user.click("grows")
    user.reads("Memory grows", "grows 5.00 MiB per step", "will be full at about step")
    assert user.clicks <= 1


def test_which_modules_activations_are_the_peak(user):
    user.click("Modules")
    user.reads("Activations of", "layers.*")
    assert user.clicks <= 1


def test_did_my_change_save_memory(user):
    user.click("checkpointing")
    user.click("Compare")
    user.reads("This run peaks 4.10 GiB lower than baseline")
    assert user.clicks <= 2


def test_which_rank_is_the_straggler_and_what_in_it(user):
    user.reads("Straggler")
    user.click("Time")
    user.reads("rank 54", "in backward")
    assert user.clicks <= 1
