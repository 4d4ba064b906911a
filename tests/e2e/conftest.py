"""The product as a user has it: wheel, fresh environment, tensorboard, Chromium."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import chromium
from tests.browser import tensorboard as running
from tests.e2e.looking import HOST, HOST_PAGE, PATIENCE_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

    from tests.browser import Server

ROOT = Path(__file__).parent.parent.parent


def run(*command: str | Path, **keywords) -> str:
    """Run a command; its output is the error message where it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        **keywords,
    )
    assert done.returncode == 0, (
        f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    )
    return done.stdout


def fresh_environment(folder: Path, wanted: str, above: Path | None = None) -> Path:
    """bin/ of an environment that holds what is wanted, and what that needs.

    It has no pip of its own, and of thousands of modules those few are compiled that are
    imported: both would take half of the time. What the environment `above` holds, another
    one's bin/, it has too.
    """
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    bin_dir = folder / "venv" / "bin"
    if above is not None:
        (packages,) = bin_dir.parent.glob("lib/python3*/site-packages")
        (theirs,) = above.parent.glob("lib/python3*/site-packages")
        (packages / "above.pth").write_text(f"{theirs}\n")
    constraints = ROOT / "tests" / "constraints.txt"
    install = (sys.executable, "-m", "pip", "--python", bin_dir / "python", "install")
    run(*install, "--quiet", "--no-compile", "-c", constraints, wanted, cwd=folder)
    return bin_dir


@pytest.fixture(scope="session")
def viewer(tmp_path_factory) -> Path:
    """bin/ of a fresh environment that holds the built wheel, and no torch."""
    folder = tmp_path_factory.mktemp("viewer")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder / "dist", ROOT)
    (wheel,) = (folder / "dist").glob("*.whl")
    return fresh_environment(folder, f"{wheel}[viewer]")


@pytest.fixture(scope="session")
def demo(forked_demo, tmp_path_factory) -> Path:
    """A logdir of the real demo: two FSDP2 ranks, trained and recorded just now."""
    logdir = tmp_path_factory.mktemp("demo") / "runs"
    sizes = ("--train", "--simulate", "0", "--ranks", "2", "--steps", "40")
    run(*forked_demo, "--no-serve", *sizes, "--out", logdir, cwd=ROOT)
    return logdir


@pytest.fixture(scope="session")
def simulated(tmp_path_factory) -> Path:
    """A logdir of 64 simulated ranks with planted faults."""
    logdir = tmp_path_factory.mktemp("simulated") / "runs"
    arguments = ("--no-serve", "--simulate", "64", "--out", logdir)
    run(sys.executable, "-m", "memboard.tb_plugin.cli", "demo", *arguments, cwd=ROOT)
    return logdir


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch) -> None:
    """Nothing of snapshots that were imported before, and nothing left behind."""
    monkeypatch.setenv("MEMBOARD_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def tensorboard(viewer, tmp_path) -> Iterator[Callable[..., Server]]:
    """Start `tensorboard` from the viewer's environment; stopped with the test."""
    with contextlib.ExitStack() as stack:

        def start(*arguments: str | Path) -> Server:
            command = [viewer / "tensorboard"]
            return stack.enter_context(serving(command, tmp_path, arguments))

        yield start


@pytest.fixture(scope="module")
def board_of(viewer, tmp_path_factory) -> Iterator[Callable[[Path], Server]]:
    """A TensorBoard on a logdir that tests only look at: one for all of a module."""
    boards: dict[Path, Server] = {}
    with contextlib.ExitStack() as stack:

        def board(logdir: Path) -> Server:
            if logdir not in boards:
                folder = tmp_path_factory.mktemp("board")
                serves = serving([viewer / "tensorboard"], folder, ("--logdir", logdir))
                with pytest.MonkeyPatch.context() as patch:
                    patch.setenv("MEMBOARD_CACHE_DIR", str(folder / "cache"))
                    boards[logdir] = stack.enter_context(serves)
            return boards[logdir]

        yield board


@contextlib.contextmanager
def serving(command: list[str | Path], folder: Path, arguments: tuple[str | Path, ...]):
    log = folder / f"tensorboard{len(list(folder.glob('*.log')))}.log"
    with running(arguments, log, command) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, driven by Playwright.

    As long as Playwright is there an event loop runs in this thread, and no test that
    comes next in the same process could run one of its own.
    """
    with chromium() as browser:
        yield browser


@pytest.fixture
def open_page(browser) -> Iterator[Callable[..., Page]]:
    """Open a URL; the test fails on any script error or policy violation in it."""
    complaints: list[str] = []
    contexts = []

    def open_url(
        url: str, *, width: int = 1280, height: int = 900, dark: bool = False
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
        )
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        if HOST in url:
            context.route(
                f"**/{HOST}",
                lambda route: route.fulfill(content_type="text/html", body=HOST_PAGE),
            )
        page = context.new_page()
        page.on("pageerror", lambda error: note_error(error, complaints))
        page.on("console", lambda message: note(message, complaints))
        page.goto(url)
        return page

    yield open_url
    for context in contexts:
        context.close()
    assert complaints == []


def note_error(error, complaints: list[str]) -> None:
    """Keep an error that nothing caught; TensorBoard's own, by its one script, is not ours."""
    stack = error.stack or ""
    if "/index.js" not in stack or "plugin/memboard" in stack:
        complaints.append(f"error: {error}\n{stack}")


def note(message, complaints: list[str]) -> None:
    """Keep what went wrong in our page; TensorBoard's own noise is not ours."""
    if message.type != "error":
        return
    where = message.location.get("url", "")
    if "plugin/memboard" in where or "Content Security Policy" in message.text:
        complaints.append(f"{where}: {message.text}")
