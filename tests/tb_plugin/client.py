"""A browser's view of the plugin: asks a route, decodes the binary envelope."""

from __future__ import annotations

import gzip
import json
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from tensorboard.plugins import base_plugin
from werkzeug.test import Client, TestResponse

from memboard.tb_plugin.api.base import API_VERSION
from memboard.tb_plugin.plugin import MemBoardPlugin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DTYPES = {"f64": "<f8", "i32": "<i4", "u16": "<u2", "u8": "u1"}

PATIENCE_SECONDS = 600.0
"""No test waits so long; a hang ends."""

QUIET = ("--memboard_read_ahead", "false", "--reload_interval", "0")
QUIET += ("--reload_task", "blocking")
"""Flags of a TensorBoard inside a test's process: nobody can end the threads in which
it would go on reading beside the tests that come next."""


class Page:
    """Requests to the plugin's routes for one logdir."""

    def __init__(self, logdir: Path | str) -> None:
        self.logdir_name = str(logdir).rstrip("/").rpartition("/")[2]
        context = base_plugin.TBContext(logdir=str(logdir), flags=None)
        self.plugin = MemBoardPlugin(context)
        # Tests write and look at once; a person does not.
        self.store = self.plugin.state().store
        self.store.index._clock = Ticking()
        self.routes = self.plugin.get_plugin_apps()

    def raw(
        self, route: str, method: str = "GET", headers=None, **query: Any
    ) -> TestResponse:
        path = route if route in self.routes else "/assets/*"
        client = Client(self.routes[path])
        return client.open(route, method=method, query_string=query, headers=headers)

    def get(self, route: str, **query: Any) -> dict[str, Any]:
        response = self.raw(route, **query)
        assert response.status_code == 200, response.data
        return decode(response)

    def run_id(self, name: str = "") -> str:
        """Of the run of that name; without one, of the logdir's own."""
        name = name or self.logdir_name
        (found,) = [r for r in self.get("/runs")["runs"] if r["name"] == name]
        return found["id"]

    def of_run(self, route: str, name: str = "", **query: Any) -> dict[str, Any]:
        return self.get(route, run=self.run_id(name), **query)


class Ticking:
    """A clock that is always late enough for the next look at the logdir."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now

    def later(self, seconds: float = 3600.0) -> None:
        self.now += seconds


def answered(ask: Callable[[], Any], is_so: Callable[[Any], object]) -> Any:
    """What is answered once it is as it should be: ask again and again, as a page does."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = ask()
        if is_so(found):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.02)


def refresh(page: Page) -> None:
    """Let time pass, so that the next request looks at the logdir again."""
    page.store.index._clock.later()


def decode(response: TestResponse) -> dict[str, Any]:
    """The `data` of an envelope with its columns as arrays; checks the format."""
    assert response.content_type == "application/octet-stream"
    body = response.data
    if response.headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    return decode_envelope(body)


def numbers_of(table: dict[str, Any], key: str) -> np.ndarray:
    """A column of a table that was sent."""
    return next(one["numbers"] for one in table["columns"] if one["key"] == key)


def texts_of(table: dict[str, Any], key: str) -> list[str]:
    return next(one["texts"] for one in table["columns"] if one["key"] == key)


def decode_envelope(body: bytes) -> dict[str, Any]:
    length = int.from_bytes(body[:4], "little")
    header = json.loads(body[4 : 4 + length].decode("utf-8"))
    assert header["api_version"] == API_VERSION
    columns = []
    for column in header["columns"]:
        assert column["offset"] % 8 == 0
        assert column["offset"] >= 4 + length
        columns.append(_column(body, column))

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            if value.keys() == {"$column"}:
                return columns[value["$column"]]
            return {key: filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [filled(item) for item in value]
        return value

    data: dict[str, Any] = filled(header["data"])
    data["$response"] = header["response"]
    return data


def _column(body: bytes, entry: dict[str, Any]) -> np.ndarray:
    name = entry["dtype"].removeprefix("packed_")
    dtype, length = np.dtype(DTYPES[name]), entry["length"]
    if name == entry["dtype"]:
        return np.frombuffer(body, dtype, length, entry["offset"])
    planes = np.frombuffer(body, np.uint8, length * dtype.itemsize, entry["offset"])
    whole = planes.reshape(dtype.itemsize, length).T.copy().view(dtype)[:, 0]
    return whole if dtype.kind == "f" else np.cumsum(whole, dtype=dtype)
