"""Asks the plugin's routes over its WSGI applications, and the command, as users do."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from tensorboard.plugins import base_plugin
from werkzeug.test import Client

from memboard.tb_plugin.cli import main
from memboard.tb_plugin.plugin import MemBoardPlugin
from tests.tb_plugin.client import decode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from werkzeug.test import TestResponse

PATIENCE_SECONDS = 300.0
_UNDER_WAY = 503
_SHOWN_HEADERS = (
    "Content-Type",
    "Content-Encoding",
    "Content-Security-Policy",
    "Location",
    "X-Content-Type-Options",
    "Cache-Control",
    "Allow",
    "Content-Disposition",
)


class Plugin:
    """The plugin on one logdir."""

    def __init__(self, logdir: Path) -> None:
        context = base_plugin.TBContext(logdir=str(logdir), flags=None)
        self._plugin = MemBoardPlugin(context)
        self._routes = self._plugin.get_plugin_apps()
        self.routes: tuple[str, ...] = tuple(
            route.removeprefix("/").removesuffix("/*") for route in self._routes
        )

    def look_once(self) -> None:
        """Look at the logdir with the first question alone, however long others take."""
        index = self._plugin.state().store.index
        now = index._clock()
        index._clock = lambda: now

    def ask(self, route: str, words: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one question: asked again until nothing is under way.

        A dictionary of `status` and either `answer` (decoded) or `error`.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            response = self._send(f"/{route}", words)
            answer = _decoded(response)
            waits = response.status_code == _UNDER_WAY or _is_under_way(answer)
            if not waits or time.monotonic() > deadline:
                return answer
            time.sleep(0.02)

    def send(self, route: str, words: Mapping[str, Any], body: bytes) -> dict[str, Any]:
        """The answer to a file that is handed over."""
        return _decoded(
            self._send(
                f"/{route}",
                words,
                method="POST",
                data=body,
                headers={"Origin": "http://localhost", "X-MemBoard-Drop": "1"},
            )
        )

    def file(self, path: str) -> dict[str, Any]:
        """What stands around a file of the page: all but its body."""
        response = self._send(path, {})
        head = {n: response.headers[n] for n in _SHOWN_HEADERS if n in response.headers}
        return {"status": response.status_code, "head": head}

    def _send(self, path: str, words: Mapping[str, Any], **more: Any) -> TestResponse:
        folder = path[: path.index("/", 1)] + "/*" if "/" in path[1:] else path
        client = Client(self._routes[folder])
        asked = {"method": "GET", "buffered": True, **more}
        return client.open(path, query_string=dict(words), **asked)


def _decoded(response: TestResponse) -> dict[str, Any]:
    status = response.status_code
    name = response.headers.get("Content-Disposition", "")
    if status == 200 and not name:
        return {"status": status, "answer": decode(response)}
    body = response.data
    if response.headers.get("Content-Encoding") == "gzip" or body[:2] == b"\x1f\x8b":
        body = gzip.decompress(body)
    text = body.decode("utf-8", "replace")
    try:
        said = json.loads(text)
    except ValueError:
        said = f"{len(body)} bytes"
    if name and isinstance(said, dict):
        said = {**said, "traceEvents": _some_of(said.get("traceEvents"))}
    if name:
        return {"status": status, "file": name, "body": said}
    return {"status": status, "error": said}


def _some_of(events: Any) -> Any:
    """The first events of a file, and how many it has of each kind."""
    if not isinstance(events, list):
        return events
    kinds = Counter(f"{one.get('ph')} {one.get('cat', '')}" for one in events)
    return {"first": events[:3], "last": events[-2:], "by_kind": dict(kinds)}


def _is_under_way(found: Any) -> bool:
    """Whether something says that the next answer has more."""
    if isinstance(found, dict):
        state, num = found.get("state"), found.get("num_opening")
        if isinstance(state, str) and state == "opening":
            return True
        if found.get("still_reading") is True or (isinstance(num, int) and num > 0):
            return True
        return any(map(_is_under_way, found.values()))
    return isinstance(found, list) and any(map(_is_under_way, found))


def command(*words: str) -> dict[str, Any]:
    """What `memboard` says, and its exit code."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        sys.argv = ["memboard", *words]
        try:
            code = main()
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else 1
        finally:
            sys.argv = before
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}
