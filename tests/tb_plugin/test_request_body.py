"""Bytes that come in: given up where they stall."""

from __future__ import annotations

import contextlib
import http.client
import socket
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from memboard.tb_plugin.cli.open.standalone import PREFIX, Standalone
from memboard.tb_plugin.index.logdirs import OpenedPaths
from memboard.tb_plugin.server import request_body
from tests.tb_plugin.client import answered
from tests.tb_plugin.logdirs import SMALL, dropped_in

if TYPE_CHECKING:
    from pathlib import Path


class Sender:
    """A connection, with the input read from it, and the clock by which bytes come."""

    def __init__(self, num_bytes: int, every_s: float) -> None:
        self.num_bytes, self.every_s, self.now, self.timeout = num_bytes, every_s, 0, 0
        self.stream = None
        self.environ = {"werkzeug.socket": self, "wsgi.input": self}

    def settimeout(self, seconds: float) -> None:
        self.timeout = seconds

    def read1(self, most: int) -> bytes:
        self.now += min(self.every_s, self.timeout)
        if self.every_s > self.timeout:
            raise TimeoutError
        return b"x" * min(self.num_bytes, most)


@pytest.mark.parametrize(
    ("num_bytes", "every_s", "seconds"),
    [
        (1 << 16, 50, 50 << 16),  # 4 GiB in 38 days
        (1 << 14, 14, 14 << 18),
        (1 << 14, 21, None),
        (1, 0.01, None),
        (1 << 20, 61, None),
    ],
)
def test_a_slow_file_comes_and_one_that_stalls_is_given_up(
    monkeypatch, num_bytes, every_s, seconds
):
    sender = Sender(num_bytes, every_s)
    monkeypatch.setattr(request_body.time, "monotonic", lambda: sender.now)
    pieces = request_body.pieces_of(sender, 4 << 30)
    if seconds is not None:
        assert sum(map(len, pieces)) == 4 << 30
        assert sender.now == seconds
        return
    with pytest.raises(request_body.StalledError):
        sum(map(len, pieces))
    assert sender.now <= 61


def test_half_sent_files_give_up_their_places(tmp_path, temporary, monkeypatch):
    monkeypatch.setattr(request_body, "STALL_SECONDS", 1.0)
    (tmp_path / "logdir").mkdir()
    given = OpenedPaths(folders=(str(tmp_path / "logdir"),))
    seen: set[Path] = set()

    def arrived() -> int:
        seen.update(temporary.rglob("*.snapshot"))
        return len(seen)

    with (
        Standalone(given, "127.0.0.1", 0) as server,
        contextlib.ExitStack() as open_ones,
    ):
        at = urlsplit(server.link(""))
        origin = f"http://{at.netloc}"
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(server.link(""), timeout=120) as let_in:
            cookie = let_in.headers["Set-Cookie"].partition(";")[0]
        headers = {"Origin": origin, "X-MemBoard-Drop": "1", "Cookie": cookie}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        begin = (
            f"POST {PREFIX}/drop?name=x.pickle HTTP/1.1\r\nHost: {at.netloc}\r\n"
            f"Content-Length: {len(SMALL)}\r\n{lines}\r\n"
        ).encode()
        halves = []
        for sent in (b"", SMALL[:-1]):
            half = socket.create_connection((at.hostname, at.port), timeout=120)
            halves.append(open_ones.enter_context(half))
            half.sendall(begin + sent)
            answered(arrived, lambda number: number == len(halves))  # has its place

        def whole() -> int:
            connection = http.client.HTTPConnection(at.hostname, at.port, timeout=120)
            connection.request("POST", f"{PREFIX}/drop", SMALL, headers)
            with connection.getresponse() as answer:
                return answer.status

        assert answered(whole, lambda status: status == 200)
        for half in halves:
            assert half.recv(100).startswith(b"HTTP/1.1 408 ")
        answered(lambda: dropped_in(temporary), lambda files: len(files) == 1)
