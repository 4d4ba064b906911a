"""Arguments, turns, fresh processes, servers and tables of the benchmarks."""

from __future__ import annotations

import argparse
import contextlib
import http.server
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ROOT = Path(__file__).parents[2]


def options(doc: str, *inputs: str, **defaults: Any) -> argparse.Namespace:
    """Parse the command line: `inputs` are paths, each of `defaults` is an option.

    A list takes several values, False is a switch, a type takes one value or is None.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in inputs:
        parser.add_argument(name, type=Path, nargs="+")
    for name, default in defaults.items():
        flag = f"--{name.replace('_', '-')}"
        if default is False:
            parser.add_argument(flag, action="store_true")
        elif isinstance(default, type):
            parser.add_argument(flag, type=default)
        elif isinstance(default, list):
            parser.add_argument(
                flag, type=type([*default, ""][0]), nargs="*", default=default
            )
        else:
            parser.add_argument(flag, type=type(default), default=default)
    return parser.parse_args()


def table(*heads: str) -> Callable[..., None]:
    """Print the head of a table in Markdown; returns what prints a row."""

    def row(*cells: object) -> None:
        print(f"| {' | '.join(map(shown, cells))} |", flush=True)

    row(*heads)
    print(f"|{'-|' * len(heads)}")
    return row


def shown(cell: object) -> str:
    """Text of a cell: three digits of a float, thousands apart, nothing for None."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, float):
        digits = 2 - math.floor(math.log10(abs(cell))) if cell else 0
        return f"{cell:,.{max(0, digits)}f}"
    return f"{cell:,}" if type(cell) is int else str(cell)


def turns(
    ways: Mapping[str, Callable[[], Any]], rounds: int, *, warm: int = 0
) -> dict[str, list[Any]]:
    """Results of every way by its name; in each round all of them take turns.

    The first `warm` rounds do not count.
    """
    found: dict[str, list[Any]] = {name: [] for name in ways}
    for number in range(warm + rounds):
        for name, way in ways.items():
            result = way()
            if number >= warm:
                found[name].append(result)
    return found


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def fresh(task: Callable[..., Any], *arguments: object, **env: object) -> Any:
    """Run a benchmark's function in a new interpreter; arguments and result as JSON."""
    module = task.__module__
    if module == "__main__":
        module = sys.modules["__main__"].__spec__.name
    code = (
        f"import json, sys; from {module} import {task.__name__} as task;"
        "print(json.dumps(task(*json.loads(sys.argv[1])), default=str))"
    )
    return printed(code, json.dumps(arguments, default=str), **env)


def printed(
    code: str, *arguments: object, python: str = sys.executable, **env: object
) -> Any:
    """Run code in a new interpreter; returns the JSON that it prints last."""
    done = subprocess.run(
        [python, "-c", code, *map(str, arguments)],
        cwd=ROOT if python == sys.executable else None,
        env={**os.environ, **{name: str(value) for name, value in env.items()}},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{python}:\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.splitlines()[-1])


_COST = """
import json, os, resource, sys, time
began = time.perf_counter()
taken = None
{code}
if taken is None:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    taken = usage.ru_utime + usage.ru_stime, usage.ru_maxrss
print(json.dumps([time.perf_counter() - began, taken[0], taken[1] / 1024]))
sys.stdout.flush()
os._exit(0)
"""

IMPORT = """
from memboard.tb_plugin.worker import limits, process
process._FORKS = False  # a child of this process: what it takes is known
job = limits.{job}
with open(sys.argv[1], "rb", buffering=0) as file, open(sys.argv[2], "wb") as columns:
    size = os.fstat(file.fileno()).st_size
    allowed = limits.Limits.of(size, job)
    order = process.Order(file, columns, job, allowed, is_last=True)
    worker = process.WorkerProcess(order)
    worker.follow(lambda _: None, lambda _: True)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = usage.ru_utime + usage.ru_stime, usage.ru_maxrss
"""
"""For `cost`: the worker brings a file to columns, `job` being SNAPSHOT or TRACE."""


def cost(code: str, *arguments: object, **options: Any) -> tuple[float, float, float]:
    """Seconds of the clock and of the processor, and MiB at most, of code run alone.

    Code may put (processor seconds, KiB) into `taken`.
    """
    wall, cpu, mib = printed(_COST.format(code=code), *arguments, **options)
    return wall, cpu, mib


@contextlib.contextmanager
def folder(keep: Path | None = None) -> Iterator[Path]:
    """The folder to keep things in, made where it is missing; or a temporary one."""
    with tempfile.TemporaryDirectory() as temporary:
        place = (keep or Path(temporary)).resolve()
        place.mkdir(parents=True, exist_ok=True)
        yield place


def disk_bytes(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


def drop_page_cache() -> bool:
    """Ask the kernel to drop file contents; False where it may not be asked."""
    subprocess.run(["sync"], check=False)
    with contextlib.suppress(OSError):
        Path("/proc/sys/vm/drop_caches").write_text("1")
        return True
    return False


@contextlib.contextmanager
def served(
    answer: Callable[[str], tuple[str, bytes] | None], root: Path
) -> Iterator[str]:
    """An HTTP server; its URL.

    `answer` returns type and body of a path, or None for the file below `root`.
    """

    class Handler(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        extensions_map = {  # noqa: RUF012
            **http.server.SimpleHTTPRequestHandler.extensions_map,
            **dict.fromkeys((".mjs", ".js"), "text/javascript"),
        }

        def log_message(self, *_: object) -> None:
            """Requests are not worth a line each."""

        def do_GET(self) -> None:
            found = answer(self.path)
            if found is None:
                super().do_GET()
                return
            kind, body = found
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(BrokenPipeError):  # the page asked for another
                self.wfile.write(body)

    def handler(*arguments: Any) -> Handler:
        return Handler(*arguments, directory=str(root))

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
