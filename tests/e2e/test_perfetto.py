"""Open in Perfetto: a trace handed on as Perfetto's deep-linking documentation says.

Perfetto itself is stood in for by a page that keeps its side of the protocol: it answers
PING from whoever opened it with PONG, once it is complete and not before its fifth
question; it takes one trace, and tells what it got. The hosted page's address is answered
with it by the browser's driver; a local build is a directory with it.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e.looking import PATIENCE_MS, eventually, opened, see, tab
from tests.e2e.test_trace import drawn, traced

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page, Route

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.browser, pytest.mark.slow]

__all__ = ["traced"]

HOSTED = "https://ui.perfetto.dev/"

DOUBLE = """<!doctype html><title>Perfetto</title><body data-version="."><script>
"use strict";
let asked = 0;
async function take(event) {
  if (document.readyState !== "complete" || event.source !== window.opener) return;
  if (event.data === "PING") {
    asked += 1;
    if (asked >= 5) event.source.postMessage("PONG", "*");
    return;
  }
  const { buffer, title, fileName } = event.data.perfetto;
  if (!(buffer instanceof ArrayBuffer) || buffer.byteLength === 0) throw new Error();
  window.removeEventListener("message", take);
  const digest = await crypto.subtle.digest("SHA-256", buffer);
  const hex = [...new Uint8Array(digest)].map((b) => b.toString(16).padStart(2, "0"));
  const got = { asked, title, fileName, origin: event.origin, sha256: hex.join("") };
  document.body.textContent = JSON.stringify(got);
}
window.addEventListener("message", take);
</script>"""


def hosted(page: Page) -> None:
    """The address of the hosted page is answered with the double."""

    def answer(route: Route) -> None:
        route.fulfill(body=DOUBLE, content_type="text/html")

    page.context.route(f"{HOSTED}**", answer)


def handed_on(page: Page) -> Page:
    """Perfetto's tab, after a click on the button."""
    with page.context.expect_page(timeout=PATIENCE_MS) as found:
        tab(page).get_by_role("button", name="Open in Perfetto").click()
    return found.value


def got(perfetto: Page) -> dict[str, object]:
    text = perfetto.locator("body", has_text="sha256")
    text.wait_for(timeout=PATIENCE_MS)
    return json.loads(text.inner_text())


def digest_of(logdir: Path) -> tuple[str, str]:
    (path,) = (logdir / "exp").glob("*.json.gz")
    return path.name, hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_hosted_page_gets_the_file_when_it_answers(board_of, open_page, traced):
    board = board_of(traced)
    page = opened(board, open_page, "trace", "run=exp")
    hosted(page)
    drawn(page)
    told = got(handed_on(page))
    assert (told["fileName"], told["sha256"]) == digest_of(traced)
    assert told["title"] == "exp"
    assert told["asked"] >= 5
    assert told["origin"] == board.url.rstrip("/")


def test_a_local_build_is_served_and_gets_it_too(
    tensorboard, open_page, traced, tmp_path
):
    build = tmp_path / "perfetto"
    build.mkdir()
    # Like Perfetto's own page, it begins by a script inside it.
    (build / "index.html").write_text(DOUBLE)
    board = tensorboard("--logdir", traced, "--memboard_perfetto", build)
    page = opened(board, open_page, "trace", "run=exp")
    drawn(page)
    perfetto = handed_on(page)
    assert got(perfetto)["sha256"] == digest_of(traced)[1]
    assert perfetto.url.startswith(board.url)


def test_a_browser_that_lets_no_tab_open_is_said(board_of, open_page, traced):
    board = board_of(traced)
    page = opened(board, open_page, "trace", "run=exp")
    drawn(page)
    page.frames[-1].evaluate("() => { window.open = () => null; }")
    tab(page).get_by_role("button", name="Open in Perfetto").click()
    see(tab(page), "allow pop-ups for this page")


TOO_LARGE = """() => {
  const fetched = window.fetch;
  window.fetch = (url, ...rest) => {
    if (!String(url).includes("trace_file")) return fetched(url, ...rest);
    const headers = { "Content-Length": "3000000000" };
    return Promise.resolve(new Response("[]", { headers }));
  };
}"""


def test_a_trace_too_large_for_a_browser_is_said_and_the_tab_closed(
    board_of, open_page, traced
):
    board = board_of(traced)
    page = opened(board, open_page, "trace", "run=exp")
    drawn(page)
    page.frames[-1].evaluate(TOO_LARGE)
    perfetto = handed_on(page)
    see(tab(page), "Perfetto was not given the trace")
    see(tab(page), "download it")
    eventually(page, perfetto.is_closed, bool)
    assert perfetto.url == "about:blank"
