"""A TensorBoard of our own beside a command: started, read for its URL, stopped."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import webbrowser
from collections import deque
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from memboard.collector.cli.failure import Failure
from memboard.collector.format.names import PLUGIN_NAME
from memboard.collector.process.bound_process import bound
from memboard.collector.process.child_python import own_module

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 5.0
_WAKE_SECONDS: Final = 0.25
_URL: Final = re.compile(r"TensorBoard \S+ at (http\S+)")


class Server:
    tab: Final = PLUGIN_NAME
    """What stands behind `#` in the URL of our tab."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """`process` must be a TensorBoard whose output is a pipe."""
        self.url = ""
        self._process = process
        self._lines: deque[str] = deque(maxlen=20)
        self._has_url = threading.Event()
        """Set as well when it ends without one."""
        self._ended = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def start(self, remedy: str) -> None:
        """Wait for the URL; `remedy` is what to do where none comes.

        Raises:
            Failure: TensorBoard ended, or said nothing for a minute.
        """
        self._has_url.wait(START_SECONDS)
        if self.url:
            return
        output = "\n".join(self._lines) or "(no output)"
        raise Failure(f"TensorBoard did not start:\n{output}", remedy=remedy)

    def wait(self, message: str) -> None:
        """Until the user interrupts, which is the normal end, or TensorBoard ends.

        `message` is printed first: from then on that is the end.
        """
        try:
            print(message, flush=True)
            # A signal just before one long wait would be handled after it. The process
            # is not polled: interrupted in there, Popen keeps a lock that `stop` takes.
            while not self._ended.wait(_WAKE_SECONDS):
                pass
        except KeyboardInterrupt:
            return
        if code := self._process.wait():
            raise Failure(f"TensorBoard ended with exit code {code}")

    def stop(self) -> None:
        """End it, by force where it does not listen."""
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(_STOP_SECONDS)

    def _read(self) -> None:
        """Keep its pipe empty, and find the URL in what it says."""
        assert self._process.stdout is not None  # noqa: S101  # a pipe, see above
        with self._process.stdout as lines:
            for line in lines:
                self._lines.append(line.rstrip())
                match = _URL.search(line)
                if match and not self.url:
                    self.url = match[1]
                    self._has_url.set()
        self._has_url.set()
        self._ended.set()


def check_viewer() -> None:
    """Find what shows recordings, which is not installed where only training runs.

    Raises:
        Failure: it is not there.
    """
    missing = [
        package for package in ("tensorboard", "werkzeug") if find_spec(package) is None
    ]
    if missing:
        raise Failure(
            f"the viewer is not installed: this Python has no {' and no '.join(missing)}",
            where=sys.executable,
            remedy="pip install 'memboard[viewer]'",
        )


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Being terminated stops what the block started as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, signal.default_int_handler)
        for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))
        if signal.getsignal(number) is not signal.SIG_IGN  # as under nohup
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def serving(
    logdir: Path,
    port: int,
    remedy: str = "Choose another port with --port.",
) -> Iterator[Server]:
    """TensorBoard on `logdir` while the block runs; `port` 0 takes a free one.

    `remedy` is said where it does not start.

    Raises:
        Failure: it is not installed, or does not start.
    """
    check_viewer()
    from importlib.metadata import entry_points  # takes as long as all the rest here

    if not entry_points(group="tensorboard_plugins", name=PLUGIN_NAME):
        print(
            "MemBoard is not installed into this Python, so TensorBoard will not show"
            " its tab.\n  what to do: run `pip install '.[viewer]'` in MemBoard's directory.",
            file=sys.stderr,
        )
    command = own_module(
        "tensorboard.main", "--logdir", str(logdir), "--port", str(port)
    )
    process = subprocess.Popen(  # noqa: S603  # our own interpreter and arguments
        bound(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    server = Server(process)
    try:
        server.start(remedy)
        yield server
    finally:
        server.stop()


def open_browser(url: str) -> None:
    """Show `url` where a browser opens a window, and does not take over the terminal."""
    has_window = sys.platform in ("win32", "darwin")
    if has_window or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(url)
