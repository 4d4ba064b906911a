"""Snapshots a user names, or drops onto the page, in the page of an installed MemBoard."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.e2e.looking import painted, see, tab
from tests.made_snapshots import long_history

if TYPE_CHECKING:
    from playwright.sync_api import FrameLocator, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SNAPSHOT = pickle.dumps(long_history(500), 4)

DRAG = """(body, [name, bytes]) => {
  const carried = new DataTransfer();
  carried.items.add(new File([new Uint8Array(bytes)], name));
  for (const kind of ["dragenter", "dragover"]) {
    body.dispatchEvent(new DragEvent(kind, {
      bubbles: true, cancelable: true, dataTransfer: carried,
    }));
  }
  body.ownerDocument.defaultView.carried = carried;
}"""
DROP = """(body) => {
  const carried = body.ownerDocument.defaultView.carried;
  body.dispatchEvent(new DragEvent("drop", {
    bubbles: true, cancelable: true, dataTransfer: carried,
  }));
}"""


def drag(page: Page, name: str, data: bytes) -> None:
    tab(page).locator("body").evaluate(DRAG, [name, list(data)])


def drop(page: Page) -> None:
    tab(page).locator("body").evaluate(DROP)


def chosen_run(scope: FrameLocator | Page) -> Locator:
    """The name of the one run that the rail shows as chosen."""
    runs = scope.get_by_role("list", name="Runs", exact=True)
    return runs.locator("[aria-current=true] .run-name")


def test_a_dropped_snapshot_is_shown(tensorboard, open_page, tmp_path):
    (tmp_path / "empty").mkdir()
    board = tensorboard("--logdir", tmp_path / "empty")
    page = open_page(f"{board.url}#memboard")
    see(tab(page), "Or drop the file here, onto this page.")
    drag(page, "<b>rank3_memory_snapshot.pickle", SNAPSHOT)
    see(tab(page), "Drop memory snapshots or traces to open them")
    drop(page)
    see(tab(page), "snapshots")
    page.wait_for_url(re.compile("view=blocks.*history=f[0-9a-f]{16}"))
    expect(chosen_run(tab(page))).to_have_text("dropped files")


def test_what_does_not_fit_together_is_said_on_both_pages(
    tensorboard, open_page, tmp_path
):
    (tmp_path / "empty").mkdir()
    board = tensorboard("--logdir", tmp_path / "empty")
    page = open_page(f"{board.url}#memboard")
    see(tab(page), "Or drop the file here, onto this page.")
    snapshot = long_history(500)
    first, *_, last = snapshot["device_traces"][0]
    first["time_us"], last["time_us"] = last["time_us"], first["time_us"]
    drag(page, "odd_rank5_snapshot.pickle", pickle.dumps(snapshot, 4))
    drop(page)
    page.wait_for_url(re.compile("view=blocks.*history=f[0-9a-f]{16}"))
    see(tab(page), "times that go back")
    tab(page).get_by_role("button", name="Segments").first.click()
    page.wait_for_url(re.compile("view=segments"))
    tab(page).get_by_role("toolbar", name="Moment").wait_for()
    see(tab(page), "times that go back")


def test_where_dropping_is_off_the_page_says_so(tensorboard, open_page, tmp_path):
    (tmp_path / "empty").mkdir()
    board = tensorboard("--logdir", tmp_path / "empty", "--memboard_drop", "false")
    page = open_page(f"{board.url}#memboard")
    see(tab(page), "No memory data yet")
    drag(page, "memory_snapshot.pickle", SNAPSHOT)
    see(tab(page), "Dropping files is switched off")
    drop(page)
    see(tab(page), "1 file not opened")
    tab(page).get_by_role("button", name="Close").press("Escape")
    tab(page).get_by_text("1 file not opened").wait_for(state="hidden")


def test_memboard_open_shows_the_file_it_was_given(viewer, open_page, tmp_path):
    path = tmp_path / "data" / "rank3_memory_snapshot.pickle"
    path.parent.mkdir()
    path.write_bytes(SNAPSHOT)
    process = subprocess.Popen(
        [viewer / "memboard", "open", path, "--no-browser"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )
    try:
        said = process.stdout.readline()
        (url,) = re.findall(r"http\S+", said)
        page = open_page(url)
        see(page, "snapshots")
        expect(chosen_run(page)).to_have_text("data")
        painted(page, page)
        see(page, "rank3_memory_snapshot.pickle")
        # The token is in a cookie that no script sees; a reload goes on without it.
        assert "token" in url
        assert page.url == re.sub(r"\?token=[^#]+", "", url)
        assert page.evaluate("document.cookie") == ""
        page.reload()
        painted(page, page)
        page.close()  # or it would miss its server
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
        process.stdout.close()
