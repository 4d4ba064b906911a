"""Open memory snapshots and profiler traces in a browser.

FILE is what `torch.cuda.memory._dump_snapshot` writes, a pickle, or the same as JSON; or a
trace of torch's profiler, Composer and others, or what `export_memory_timeline` wrote;
gzipped or not. DIR is searched for such files and for recordings of MemBoard. Only what is
named is shown. Ranks and steps come from the names (`memory_snapshot_rank3_step40.pickle`,
`step_40/rank3_*.pickle`), of traces also from the files.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from memboard.collector.cli.failure import Failure
from memboard.collector.cli.tensorboard import (
    check_viewer,
    ending_in_order,
    open_browser,
)
from memboard.tb_plugin.cli.opening import is_folder, open_files, path_or_url
from memboard.tb_plugin.cli.options import add_capacity, port
from memboard.tb_plugin.cli.text import complain
from memboard.tb_plugin.formats.registry import UnknownFormatError, format_of
from memboard.tb_plugin.index.logdirs import OpenedPaths
from memboard.tb_plugin.storage import StorageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

    from memboard.tb_plugin.index.listing import FoundRun
    from memboard.tb_plugin.index.store import Store

_SEARCH_SECONDS: Final = 10.0
"""Time of the search for the first file; the page goes on by itself."""
_POLL_SECONDS: Final = 0.02
_MAX_TRIED: Final = 100
"""Broken files that are passed over in search of the first one that is not."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `memboard open`."""
    parser.add_argument(
        "paths",
        nargs="+",
        type=path_or_url,
        metavar="FILE_OR_DIR",
        help="paths, or URLs such as s3://bucket/runs",
    )
    parser.add_argument(
        "--port",
        type=port,
        default=0,
        metavar="P",
        help="port to listen on (default: a free one)",
    )
    parser.add_argument(
        "--host",
        default="localhost",
        metavar="H",
        help="address to listen on; others than localhost can be reached from the network,"
        " by whoever has the URL with its token (default: %(default)s)",
    )
    parser.add_argument(
        "--hosts",
        default="",
        metavar="NAMES",
        help="host names of proxies that lead here, with commas between them",
    )
    add_capacity(parser)
    parser.add_argument(
        "--no-browser", action="store_true", help="print the URL and open no browser"
    )


def run(options: argparse.Namespace) -> int:
    """Serve until the user interrupts."""
    check_viewer()
    from memboard.tb_plugin.cli.open.standalone import Standalone

    good, bad = open_files(options.paths, folders=True)
    complain("open", bad)
    if not good:
        return 2
    opened = OpenedPaths(
        files=tuple(str(path) for path in good if not is_folder(path)),
        folders=tuple(str(path) for path in good if is_folder(path)),
        capacity_bytes=options.capacity,
    )
    try:
        server = Standalone(opened, options.host, options.port, options.hosts)
    except OSError as error:
        raise Failure(
            f"nothing can be served at {options.host}: {error}",
            remedy="choose another port with --port, or another address with --host",
        ) from error
    # From here on an interrupt is the normal end.
    with ending_in_order(), server, suppress(KeyboardInterrupt):
        server.plugin.read_ahead()
        place = first_place(opened, lambda: server.plugin.state().store)
        if not place:
            print(
                "There is nothing to show yet; the page fills when files appear.",
                file=sys.stderr,
            )
        print(f"Serving {server.link(place)}\nuntil Ctrl-C.", flush=True)
        if not options.no_browser:
            open_browser(server.link(place, once=True))
        server.wait()
    return 0


def first_place(opened: OpenedPaths, store: Callable[[], Store]) -> str:
    """The hash of the URL that shows what was named first.

    Of snapshots Memory, Blocks, of the first one that is not plainly broken, of
    traces the Trace page, of a recording its first page.
    `store` is called only where no file was named: it takes a while to be there.
    """
    if opened.files:
        places = _places(opened.runs())
        return next((places[path] for path in opened.files if path in places), "")
    found_store, deadline = store(), time.monotonic() + _SEARCH_SECONDS
    found_store.look()
    while found_store.index.is_walking and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS if found_store.index.is_listing else 0.0)
        found_store.look()
    runs = [run.found for run in found_store.runs()]
    places = _places(runs)
    whole = (path for path in islice(places, _MAX_TRIED) if not _is_broken(path))
    for path in (*islice(whole, 1), *islice(places, 1)):
        return places[path]
    return next((urlencode({"run": run.id}) for run in runs), "")


def _is_broken(path: str) -> bool:
    """Whether both ends of a file suffice to see that it cannot be read."""
    try:
        format_of(path)
    except UnknownFormatError:
        return True
    except StorageError:  # its store has not sent it yet
        return False
    return False


def _places(runs: Iterable[FoundRun]) -> dict[str, str]:
    """The hash that shows each file, by its path, snapshots first."""
    runs = list(runs)
    places = {
        file.path: urlencode({"view": "blocks", "run": run.id, "history": file.id})
        for run in runs
        if run.snapshots is not None
        for file in run.snapshots.found.files
    }
    for run in runs:
        if run.traces is not None and run.made_of != "recording":
            place = urlencode({"view": "trace", "run": run.id})
            places.update((file.path, place) for file in run.traces.found.files)
    return places
