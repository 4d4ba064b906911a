"""Write the index of runs at a store; they then open quickly.

A run of a thousand ranks is a thousand objects, and each costs a request before the page
can show anything. The index is one object beside them (plugins/memboard/run.index) with
the bytes that opening them reads. Files that change later are read themselves, and
deleting the index costs nothing but time. A run whose recordings are mirrored (`remote`)
gets it when rank 0 closes.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.cli.failure import Failure
from memboard.collector.format.names import RANK_FILES_DIR, RUN_INDEX
from memboard.collector.format.sizes import counted
from memboard.tb_plugin import storage
from memboard.tb_plugin.cli.opening import (
    await_end,
    choose_run,
    no_deadline,
    no_recording,
    open_place,
    path_or_url,
    refused,
    runs_at,
)
from memboard.tb_plugin.cli.options import add_run, add_wait
from memboard.tb_plugin.index.run import Run
from memboard.tb_plugin.storage.content.run_index import encode_index
from memboard.tb_plugin.storage.urls import parse_url

if TYPE_CHECKING:
    import argparse

    from memboard.tb_plugin.storage.content.blocks import Content
    from memboard.tb_plugin.storage.remote import Remote

_MAX_PIECES_BYTES: Final = 1 << 29
"""Of one index; ranks beyond that are read from their own files."""
_CLOSE_WAIT_SECONDS: Final = 60.0
"""For the other ranks' files, where rank 0 has closed."""
_MADE: Final = "/".join(("", *RANK_FILES_DIR, RUN_INDEX))
"""End of an index's URL, below that of its run."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `memboard index`."""
    parser.add_argument(
        "logdir",
        type=path_or_url,
        metavar="URL",
        help="a logdir or a run's directory at a store, such as s3://bucket/runs",
    )
    add_run(parser, "only this run")
    add_wait(parser)


def run(options: argparse.Namespace) -> int:
    if not isinstance(options.logdir, str):
        raise Failure(
            "this is a path of this machine; only stores have an index",
            where=options.logdir,
            remedy="name a URL such as s3://bucket/runs",
        )
    root = str(open_place(options.logdir))
    runs = runs_at(root)
    if options.name is None:
        chosen = [run for run in runs.runs() if run.made_of == "recording"]
    else:
        chosen = [choose_run(runs, options.name, root)]
    if not chosen:
        raise no_recording(root)
    for recorded_run in chosen:
        remote = storage.remote_at(recorded_run.found.folder)
        num_bytes = _write_index(recorded_run, remote, options.wait)
        num = len(recorded_run.found.files)
        print(
            f"{recorded_run.found.title}: {counted(num, 'file')}, {num_bytes / 1e6:.1f} MB"
        )
    return 0


def _write_index(run: Run, remote: Remote, wait: float) -> int:
    """Read a run as a page does, and write what that took; the bytes written."""
    run.update(no_deadline())
    await_end(run, wait)
    spans: dict[Content, list[tuple[int, int]]] = {}

    def note(content: Content, start: int, length: int) -> None:
        end = min(start + length, content.size_bytes)
        if start < end:
            spans.setdefault(content, []).append((start, end))

    remote.watch = note
    try:
        Run(run.found).update(no_deadline())
    finally:
        remote.watch = None
    pieces, room = [], _MAX_PIECES_BYTES
    for content, spans_of_file in spans.items():
        joined = _joined(spans_of_file)
        room -= sum(end - start for start, end in joined)
        if room < 0:
            break
        data = [
            (start, remote.read(content, start, end - start)) for start, end in joined
        ]
        pieces.append((content.path.rpartition("/")[2], content.size_bytes, data))
    index = b"".join(encode_index(pieces))
    path = f"{run.found.folder}/{RUN_INDEX}"
    try:
        remote.write(path, index)
    except storage.StorageError as error:
        raise refused(error, path) from error
    return len(index)


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, without overlaps."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _index_mirrored(target: str, task: dict[str, Any]) -> None:
    """Write the index with that URL, once the mirror of a run is complete.

    `task`: as `memboard.collector.mirror.finishing` takes it.
    """
    if not target.endswith(_MADE) or target.startswith("file:"):
        return  # ranks' files have keys of their own, or lie on a disk
    url = parse_url(target.removesuffix(_MADE))
    # Options may be secret, so they are no arguments of the process.
    options = {**url.options, **task["settings"]["storage_options"]}
    remote = storage.mount(replace(url, options=options))
    for run in runs_at(url.root).runs():
        if run.made_of == "recording":
            _write_index(run, remote, _CLOSE_WAIT_SECONDS)


if __name__ == "__main__":
    try:
        _index_mirrored(sys.argv[1], json.load(sys.stdin))
    except Failure as failure:
        sys.exit(str(failure))
