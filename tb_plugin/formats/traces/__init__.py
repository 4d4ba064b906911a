"""Kineto and Chrome traces, and torch's exported memory timelines, as columns.

For whoever wants one:

- `open_trace`: a file to a `tb_plugin.analysis.trace.trace.Trace`, from the cache or by a worker;
- `args`: all arguments of one event, read again from where it stands in the file.

Reading, inside the worker:

- `trace_file`: an open file to the tables of a column file;
- `inflated`: its bytes, within bounds, and where they end too early;
- `chunks`: runs of whole events, found without parsing, and what stands around them;
- `pieces`: the same, one event at a time and with repairs, where a chunk is damaged;
- `events`: what is decoded of an event, by msgspec, and `exact_times` of it;
- `gathering`, `growing`, `details`: events become columns; `begin_end`, `flow_ends`, `track_names`
  put together what several events say; `assembling` makes the tables of all that;
- `top_level`: what a trace says of itself; `refusals`: why a file is no trace, or shows nothing;
- `stored`: the tables to a `Trace`;
- `timelines`: `export_memory_timeline`'s three kinds of files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_plugin.formats.traces.args import FileArgs
from tb_plugin.formats.traces.bytes.stored import trace_of
from tb_plugin.jobs.worker.kinds import TRACE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tb_plugin.analysis.trace.trace import Trace
    from tb_plugin.jobs.worker.column_cache import FileKey
    from tb_plugin.jobs.worker.importer import Importer


def open_trace(
    path: str | Path,
    importer: Importer,
    *,
    listed: FileKey | None = None,
    again: bool = False,
    note: Callable[[float], None] | None = None,
) -> Trace:
    """A trace's file, or a memory timeline's; waits until it is read.

    Args:
        path: of the file.
        importer: reads it, unless the cache has it.
        listed: what the file was when its path was found free of links.
        again: somebody wants it tried again although it failed.
        note: is told how far it is, from 0 to 1.

    Raises:
        ImportFailedError: there is no trace; its parts say why.
    """
    running = importer.start(path, listed, again=again, kind=TRACE)
    tables = running.followed(note)
    key, chunks = running.key, tables.get("chunks")
    args = None if key is None or not chunks else FileArgs(path, key, chunks)
    return trace_of(tables, args)
