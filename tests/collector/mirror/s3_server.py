"""An S3 server on this machine (moto's), seen through a proxy that misbehaves on demand."""

from __future__ import annotations

import atexit
import contextlib
import logging
import socket
import threading
import time
from functools import cache
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import s3fs
from moto.server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel(logging.ERROR)

SECRET = "s3cr3t-key-of-nobody"


class Proxy(ThreadingHTTPServer):
    """Passes requests on; may be slow, refuse, break off, and counts what was put."""

    daemon_threads = True

    def __init__(self, port: int, listening: socket.socket | None = None) -> None:
        self.behind = port
        self.delay_seconds = 0.0
        self.num_to_refuse = 0
        """So many PUTs are answered by 503 before one gets through."""
        self.num_to_break_off = 0
        """So many PUTs lose their connection halfway."""
        self.denies = False
        self.is_gone = False
        self.may_pass = threading.Event()
        """Cleared: requests are taken, and answered once it is set again."""
        self.may_pass.set()
        self.num_connected = 0
        self.lock = threading.Lock()
        """Guards all that is counted here: every connection has a thread of its own."""
        self.puts: list[str] = []
        """Paths of the PUTs that got through."""
        self.gets: list[tuple[str, str]] = []
        """Paths with their queries, and ranges, of the GETs that got through."""
        super().__init__(("127.0.0.1", 0), Passing, bind_and_activate=False)
        if listening is None:
            self.server_bind()
        else:
            self.socket.close()
            self.socket = listening
            self.server_address = listening.getsockname()
        self.server_activate()


class Passing(BaseHTTPRequestHandler):
    """One request, handed on as it is."""

    protocol_version = "HTTP/1.1"
    server: Proxy

    def handle(self) -> None:
        with self.server.lock:
            self.server.num_connected += 1
        try:
            super().handle()
        finally:
            with self.server.lock:
                self.server.num_connected -= 1

    def handle_one_request(self) -> None:
        with contextlib.suppress(ConnectionError, TimeoutError):
            super().handle_one_request()

    def pass_on(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        is_put = self.command == "PUT"
        if self.server.is_gone or (is_put and self._takes_one("num_to_break_off")):
            self.rfile.read(size // 2)
            self.connection.close()
            self.close_connection = True
            return
        body = self._body(size)
        if body is None:  # whoever sent it has ended
            self.close_connection = True
            return
        time.sleep(self.server.delay_seconds)
        self.server.may_pass.wait(300)
        if self.server.denies:
            self._answer(403, b"<Error><Code>AccessDenied</Code></Error>")
            return
        if is_put and self._takes_one("num_to_refuse"):
            self._answer(503, b"<Error><Code>ServiceUnavailable</Code></Error>")
            return
        behind = HTTPConnection("127.0.0.1", self.server.behind, timeout=300)
        skipped = {"transfer-encoding", "content-length", "expect"}
        headers = {k: v for k, v in self.headers.items() if k.lower() not in skipped}
        if is_put:
            headers["Content-Length"] = str(len(body))
        behind.request(self.command, self.path, body or None, headers)
        answer = behind.getresponse()
        content = answer.read()
        if is_put and answer.status == 200:
            self.server.puts.append(self.path.partition("?")[0])
        if self.command == "GET":
            self.server.gets.append((self.path, self.headers.get("Range", "")))
        self._answer(answer.status, content, dict(answer.getheaders()))
        behind.close()

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = pass_on  # noqa: N815  # its names

    def _takes_one(self, count: str) -> bool:
        """Whether there was one left to count down."""
        with self.server.lock:
            left = getattr(self.server, count)
            setattr(self.server, count, max(0, left - 1))
        return left > 0

    def _body(self, size: int) -> bytes | None:
        """What was sent; None where it ends too early."""
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            body = self.rfile.read(size)
            return body if len(body) == size else None
        pieces = []
        while length := int(self.rfile.readline() or b"-1", 16):
            piece = self.rfile.read(max(0, length))
            if len(piece) != length:
                return None
            pieces.append(piece)
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _answer(self, status: int, content: bytes, headers: Any = None) -> None:
        self.send_response_only(status)
        given = dict((headers or {}).items())
        lowered = {key.lower() for key in given}
        for key, value in given.items():
            if key.lower() not in {"transfer-encoding", "connection"}:
                self.send_header(key, value)
        if "content-length" not in lowered:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@cache
def moto_port() -> int:
    """The port of the one server of this process."""
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    atexit.register(server.stop)
    return int(server.get_host_and_port()[1])


class S3:
    """The server, its proxy, and a client of one's own."""

    def __init__(self) -> None:
        self._port = moto_port()
        # What the server holds is the process's: start with nothing.
        connection = HTTPConnection("127.0.0.1", self._port, timeout=300)
        connection.request("POST", "/moto-api/reset")
        assert connection.getresponse().status == 200
        connection.close()
        self.proxy: Proxy = self._open()
        self._kept: socket.socket | None = None

    def _open(self, listening: socket.socket | None = None) -> Proxy:
        proxy = Proxy(self._port, listening)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        return proxy

    @property
    def options(self) -> dict[str, Any]:
        """What `remote.storage_options` must hold."""
        url = f"http://127.0.0.1:{self.proxy.server_address[1]}"
        return {
            "key": "me",
            "secret": SECRET,
            "client_kwargs": {"endpoint_url": url, "region_name": "us-east-1"},
            "config_kwargs": {
                "connect_timeout": 60,
                "read_timeout": 60,
                "retries": {"max_attempts": 1},
            },
        }

    def environ(self, nowhere: str) -> dict[str, str]:
        """Credentials as users set them; `nowhere`: where there is no file."""
        return {
            "AWS_ACCESS_KEY_ID": "AKIAOFNOBODY",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.options["client_kwargs"]["endpoint_url"],
            "AWS_MAX_ATTEMPTS": "1",
            "AWS_CONFIG_FILE": nowhere,
            "AWS_SHARED_CREDENTIALS_FILE": nowhere,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client(self) -> s3fs.S3FileSystem:
        """A file system that does not go through the proxy's whims."""
        url = f"http://127.0.0.1:{self._port}"
        options = {**self.options, "client_kwargs": {"endpoint_url": url}}
        return s3fs.S3FileSystem(
            **options, skip_instance_cache=True, use_listings_cache=False
        )

    def go_away(self) -> None:
        """Nobody listens any more, on connections that are open neither."""
        self.proxy.is_gone = True
        self.proxy.may_pass.set()
        self.proxy.shutdown()
        address = self.proxy.server_address
        self.proxy.server_close()
        # Nobody else may have the port meanwhile; whoever knocks is refused.
        self._kept = socket.socket()
        self._kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._kept.bind(address)

    def come_back(self) -> None:
        """At the same port."""
        assert self._kept is not None
        self.proxy, self._kept = self._open(self._kept), None

    def close(self) -> None:
        """End the proxy."""
        if self._kept is None:
            self.go_away()
        if self._kept is not None:
            self._kept.close()
