"""memory_viz's page, served from a folder that has it, and what it takes."""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import re
import threading
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def _page_of(folder: Path) -> str:
    """The page, with d3 from `folder` and not from the network."""
    imports = {}
    for manifest in sorted(folder.glob("node_modules/*/package.json")):
        told = json.loads(manifest.read_text())
        entry = told.get("module") or told.get("main") or "index.js"
        imports[told["name"]] = f"/{manifest.parent.relative_to(folder)}/{entry}"
    script = (folder / "MemoryViz.js").read_text()
    for url, name in re.findall(r'"(https://[^"]*?/(d3[a-z-]*)@[^"]*)"', script):
        imports[url] = imports[name]
    return (
        "<!DOCTYPE html><html><head>"
        f'<script type="importmap">{json.dumps({"imports": imports})}</script>'
        '</head><body><script type="module" src="/MemoryViz.js"></script></body></html>'
    )


@contextlib.contextmanager
def memory_viz_page(folder: Path) -> Iterator[str]:
    """memory_viz's page served from `folder`; its URL."""
    page = _page_of(folder).encode()

    class Handler(http.server.SimpleHTTPRequestHandler):
        extensions_map: ClassVar = dict.fromkeys((".mjs", ".js"), "text/javascript")

        def log_message(self, *_: object) -> None:
            """Requests are not worth a line each."""

        def do_GET(self) -> None:
            if self.path != "/":
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

    handler = functools.partial(Handler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
