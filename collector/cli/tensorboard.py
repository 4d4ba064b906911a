"""A TensorBoard of our own beside a command: started, asked for its URL, stopped."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections import deque
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final

from collector.cli.failure import Failure
from collector.format.names import PLUGIN_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 5.0
_URL: Final = re.compile(r"TensorBoard \S+ at (http\S+)")


class Server:
    """A running TensorBoard."""

    tab: Final = PLUGIN_NAME
    """What stands behind `#` in the URL of our tab."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """`process` must be a TensorBoard whose output is a pipe."""
        self.url = ""
        self._process = process
        self._lines: deque[str] = deque(maxlen=20)
        self._known = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def start(self) -> None:
        """Wait for the URL.

        Raises:
            Failure: TensorBoard ended, or said nothing for a minute.
        """
        self._known.wait(START_SECONDS)
        if self.url:
            return
        said = "\n".join(self._lines) or "(it said nothing)"
        raise Failure(
            f"TensorBoard did not start:\n{said}",
            remedy="Choose another port with --port, or write the logdir alone with"
            " --no-serve.",
        )

    def wait(self) -> None:
        """Until the user interrupts, which is the normal end, or TensorBoard ends."""
        try:
            code = self._process.wait()
        except KeyboardInterrupt:
            return
        if code:
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
                found = _URL.search(line)
                if found and not self.url:
                    self.url = found[1]
                    self._known.set()
        self._known.set()


@contextmanager
def serving(logdir: Path, port: int) -> Iterator[Server]:
    """TensorBoard on `logdir` while the block runs; `port` 0 takes a free one.

    Raises:
        Failure: it does not start.
    """
    if not entry_points(group="tensorboard_plugins", name=PLUGIN_NAME):
        print(
            "MemBoard is not installed into this Python, so TensorBoard will not show"
            " its tab.\n  what to do: run `pip install .` in MemBoard's directory.",
            file=sys.stderr,
        )
    command = [sys.executable, "-m", "tensorboard.main"]
    command += ["--logdir", str(logdir), "--port", str(port)]
    process = subprocess.Popen(  # noqa: S603  # our own interpreter and arguments
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    server = Server(process)
    try:
        server.start()
        yield server
    finally:
        server.stop()
