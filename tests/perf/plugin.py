"""The plugin in this process, loaded as TensorBoard loads it, and the cost of its answers."""

from __future__ import annotations

import gzip
import json
import resource
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tensorboard.backend import application  # noqa: F401  in memory as served
from tensorboard.plugins import base_plugin
from werkzeug.test import Client

from memboard.tb_plugin.loader import Loader


@dataclass
class Answer:
    """One answer: the body as it was sent, and seconds of the clock and the processor."""

    sent: bytes
    etag: str | None
    wall: float
    cpu: float

    @cached_property
    def raw(self) -> bytes:
        """The body, unpacked."""
        return gzip.decompress(self.sent) if self.sent[:2] == b"\x1f\x8b" else self.sent

    @cached_property
    def data(self) -> Any:
        length = int.from_bytes(self.raw[:4], "little")
        return json.loads(self.raw[4 : 4 + length])["data"]


class Plugin:
    """Routes of the plugin on one logdir, to a client that takes gzip."""

    def __init__(self, logdir: str) -> None:
        context = base_plugin.TBContext(logdir=logdir, flags=None)
        self.routes = Loader().load(context).get_plugin_apps()

    def ask(self, route: str, etag: str | None = None, **query: Any) -> Answer:
        headers = {"Accept-Encoding": "gzip"}
        if etag is not None:
            headers["If-None-Match"] = etag
        known = {name: value for name, value in query.items() if value is not None}
        began, used = time.perf_counter(), time.process_time()
        response = Client(self.routes[f"/{route}"]).get(
            f"/{route}", query_string=known, headers=headers
        )
        wall, cpu = time.perf_counter() - began, time.process_time() - used
        assert response.status_code in {200, 304}, (route, query, response.data)
        return Answer(response.data, response.headers.get("ETag"), wall, cpu)


def rss_mb() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
