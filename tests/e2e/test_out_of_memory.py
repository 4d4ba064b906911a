"""An out-of-memory error from the Overview's verdict to the block that was asked for."""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from memboard.tb_plugin.analysis.findings.text import size_text
from tests.e2e.looking import (
    PATIENCE_MS,
    eventually,
    hash_holds,
    opened,
    painted,
    see,
    tab,
    word_of,
)
from tests.errors_found import errors_in
from tests.simulate import oom_case

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def banner(page: Page) -> Locator:
    """What the Overview opens with where memory ran out."""
    found = tab(page).get_by_role("article").first
    found.get_by_role("button", name="Open at the error").wait_for(timeout=PATIENCE_MS)
    return found


@pytest.fixture(scope="session")
def fragmented(tmp_path_factory) -> tuple[Path, int]:
    """A logdir of the pickles of a simulated error, and what was asked for."""
    logdir = tmp_path_factory.mktemp("fragmented")
    (logdir / "run").mkdir()
    case = oom_case("fragmented", 10_003)
    case.write(logdir / "run")
    return logdir, case.label.requested_bytes


def test_the_overview_opens_with_the_verdict_and_leads_to_the_moment(
    board_of, open_page, simulated
):
    board = board_of(simulated)
    page = open_page(f"{board.url}#memboard")
    found = banner(page)
    see(found, "rank 41")
    see(found, "memory retained across steps filled the GPU")
    see(found, "memory retained across steps")
    see(found, "evaluate.py:52 append")
    see(found, "What to try")
    advice = found.get_by_role("listitem").filter(has_text="up to").first
    expect(advice).to_contain_text("from step to step at evaluate.py:52 append")
    found.get_by_text("Evidence:").click()
    see(found, "largest free block")
    found.get_by_role("button", name="Open at the error").click()
    hash_holds(page, "view=blocks")
    asked = int(word_of(page, "moment"))
    painted(page)
    see(tab(page), "rank 41")
    readout = tab(page).locator(".allocations-readout")
    expect(readout).to_contain_text(f"at event {asked:,}")
    see(tab(page), "Simulated data")
    # The line that the verdict names holds most of what is live.
    rows = tab(page).get_by_role("grid", name="Top holders")
    first = rows.locator(".row-table-row").first
    expect(first).to_contain_text("evaluate.py:52 append")
    # Away and back again.
    tab(page).get_by_role("button", name="Peak", exact=True).click()
    eventually(page, lambda: int(word_of(page, "moment")), lambda now: now < asked)
    tab(page).get_by_role("button", name="Out of memory", exact=True).click()
    hash_holds(page, f"moment={asked}")


def test_an_error_in_somebody_elses_pickles_has_a_verdict(
    tensorboard, open_page, fragmented
):
    logdir, requested_bytes = fragmented
    board = tensorboard("--logdir", logdir)
    page = opened(board, open_page, "overview")
    found = banner(page)
    see(found, "Out of memory: fragmentation")
    size = re.escape(size_text(requested_bytes))
    expect(found).to_contain_text(
        re.compile(f"An allocation of {size} (at .+ )?failed")
    )


def test_the_report_says_what_the_page_says(viewer, simulated, tmp_path):
    def report(*options: str) -> str:
        done = subprocess.run(
            [viewer / "memboard", "report", simulated, *options],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        )
        return done.stdout

    (run,) = json.loads(report("--json"))["runs"]
    first = errors_in(run["findings"])[0]
    assert (first["rank"], first["key"]) == (41, "growth")
    text = report("--md")
    assert first["sentence"] in text
    assert re.search(r"^# ", text, re.MULTILINE)
