"""Traces as bytes, read as the worker reads them."""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
import weakref
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memboard.tb_plugin.formats.traces.args import FileArgs
from memboard.tb_plugin.formats.traces.bytes.stored import trace_of
from memboard.tb_plugin.formats.traces.trace_file import imported
from memboard.tb_plugin.worker.cache import FileKey
from memboard.tb_plugin.worker.columns import open_columns, write_columns

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.trace.trace import Trace


def read(content: bytes | Path) -> Trace:
    """The trace of a file of this content, through a column file; both go with it."""
    with ExitStack() as unless_read:
        folder = Path(tempfile.mkdtemp())
        unless_read.callback(shutil.rmtree, folder)
        path = content if isinstance(content, Path) else folder / "a.json"
        if isinstance(content, bytes):
            path.write_bytes(content)
        with path.open("rb", buffering=0) as file:
            tables, meta = imported(file)
            with (folder / "a.columns").open("wb") as out:
                write_columns(out, tables, meta)
        stored = open_columns(folder / "a.columns")
        args = FileArgs(path, FileKey.of(path.stat()), stored.get("chunks") or {})
        weakref.finalize(args, unless_read.pop_all().close)
        return trace_of(stored, args)


def document(events: list[Any], **top: Any) -> bytes:
    return json.dumps({**top, "traceEvents": events}).encode()


def event(name: str = "aten::mm", ts: Any = 0, dur: Any = 1, **more: Any) -> dict:
    found = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1}
    return {**found, "ts": ts, "dur": dur, **more}


def shapes_of(text: bytes, events: list[Any]) -> dict[str, bytes]:
    """The same trace, written in other ways."""
    root = json.loads(text)
    return {
        "compact": json.dumps(root, separators=(",", ":")).encode(),
        "indented": json.dumps(root, indent=1).encode(),
        "gzipped": gzip.compress(text),
        "two members": gzip.compress(text[:20]) + gzip.compress(text[20:]),
        "list": json.dumps(events).encode(),
        "open list": json.dumps(events).encode()[:-1] + b",\n",
        "with a mark": b"\xef\xbb\xbf" + text,
    }


def problems_of(trace: Trace) -> dict[str, int]:
    return {problem.what: problem.count for problem in trace.problems}


def names_of(trace: Trace) -> list[str]:
    return [trace.name_of(row) for row in range(len(trace.slices))]
