"""Kineto and Chrome traces, and torch's exported memory timelines, as columns.

The worker runs `trace_file`: chunks of whole events are decoded by msgspec and become
columns; a damaged chunk is read one event at a time, with repairs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from memboard.tb_plugin.analysis.trace.trace import Trace
    from memboard.tb_plugin.worker.cache import FileKey
    from memboard.tb_plugin.worker.importer import Importer


def read_trace(
    path: str | Path,
    importer: Importer,
    *,
    listed: FileKey | None = None,
    note: Callable[[float], None] | None = None,
) -> Callable[[], Trace]:
    """Read a trace's file, or a memory timeline's, and give what makes the trace of it.

    Args:
        path: of the file.
        importer: reads it, unless the cache has it.
        listed: what the file was when its path was found free of links.
        note: is told how far it is, from 0 to 1.

    Raises:
        ImportFailedError: there is no trace; its parts say why.
    """
    # Here, because whoever lists traces imports this package and reads none.
    from memboard.tb_plugin.formats.traces.args import FileArgs
    from memboard.tb_plugin.formats.traces.bytes.stored import trace_of
    from memboard.tb_plugin.worker.importer import key_of
    from memboard.tb_plugin.worker.limits import TRACE

    key = key_of(os.fspath(path), listed)
    tables = importer.tables(path, TRACE, listed, note)
    chunks = tables.get("chunks")
    args = FileArgs(path, key, chunks) if chunks else None
    return lambda: trace_of(tables, args)
