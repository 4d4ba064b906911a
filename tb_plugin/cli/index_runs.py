"""Write the index of each run at a store, so that TensorBoard opens it quickly.

A run of a thousand ranks is a thousand objects, and each costs a request before the page
can show anything. The index is one object beside them (plugins/memboard/run.index) that
holds what opening them reads:

  memboard index s3://bucket/runs
  memboard index gs://bucket/runs --run exp1

It is a copy of some bytes: files that change later are read themselves, and deleting it
costs nothing but time. A run whose recordings are mirrored (`remote`) gets it when rank 0
closes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collector.cli.failure import Failure
from tb_plugin.cli.addresses import path_or_url
from tb_plugin.cli.run_options import add_run, add_wait

if TYPE_CHECKING:
    import argparse

    from tb_plugin.index.run import Run
    from tb_plugin.storage.blocks import Content
    from tb_plugin.storage.remote import Remote

HELP = "write the index of runs at a store, so that they open with few requests"

_MAX_PIECES_BYTES: Final = 1 << 29
"""Of one index; ranks beyond that are read from their own files."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `memboard index`."""
    parser.add_argument(
        "logdir",
        type=path_or_url,
        metavar="URL",
        help="a logdir or a run's directory at a store, such as s3://bucket/runs",
    )
    add_run(parser, "one run alone")
    add_wait(parser)


def run(options: argparse.Namespace) -> int:
    """Write them."""
    from tb_plugin import storage
    from tb_plugin.cli.named_files import known
    from tb_plugin.cli.recordings import choose_run, open_store

    if not isinstance(options.logdir, str):
        raise Failure(
            "this is a directory of this machine; an index helps at stores alone",
            where=str(options.logdir),
            remedy="name a URL such as s3://bucket/runs",
            code=2,
        )
    root = str(known(options.logdir))
    store = open_store(root)
    if options.name is None:
        runs = [one for one in store.runs() if one.made_of == "recording"]
    else:
        runs = [choose_run(store, options.name, root)]
    if not runs:
        raise Failure(
            "there is no recording",
            where=root,
            remedy="name the URL that `remote` was given, or one above it",
        )
    for one in runs:
        remote = storage.remote_at(one.found.folder)
        num_bytes = write_index(one, remote, options.wait)
        num = len(one.found.files)
        print(f"{one.found.name}: {num} files, {num_bytes / 1e6:.1f} MB")
    return 0


def write_index(one: Run, remote: Remote, wait: float) -> int:
    """Read a run as a page does, and write what that took; the bytes written.

    Raises:
        Failure: the store refuses.
    """
    from collector.format.names import RUN_INDEX
    from collector.format.run_index import encode_index
    from tb_plugin.cli.recordings import await_end, unhurried
    from tb_plugin.index.run import Run
    from tb_plugin.storage import StorageError

    one.update(unhurried())
    await_end(one, wait)
    reads = _Reads()
    remote.watch = reads.note
    try:
        Run(one.found).update(unhurried())
    finally:
        remote.watch = None
    pieces = reads.pieces(remote)
    data = b"".join(encode_index(pieces))
    path = f"{one.found.folder}/{RUN_INDEX}"
    try:
        remote.write(path, data)
    except StorageError as error:
        raise Failure(
            f"the index cannot be written: {error.strerror}",
            where=path,
            remedy=error.remedy,
        ) from error
    return len(data)


class _Reads:
    """What was read of each file."""

    def __init__(self) -> None:
        self._spans: dict[Content, list[tuple[int, int]]] = {}

    def note(self, content: Content, start: int, length: int) -> None:
        """These bytes were read, as far as the file has them."""
        end = min(start + length, content.size_bytes)
        if start < end:
            self._spans.setdefault(content, []).append((start, end))

    def pieces(self, remote: Remote) -> list[tuple[str, int, list[tuple[int, bytes]]]]:
        """Names, sizes and bytes, each once."""
        found = []
        room = _MAX_PIECES_BYTES
        for content, spans in list(self._spans.items()):
            joined: list[tuple[int, int]] = []
            for start, end in sorted(spans):
                if joined and start <= joined[-1][1]:
                    joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
                else:
                    joined.append((start, end))
            room -= sum(end - start for start, end in joined)
            if room < 0:
                break
            data = [
                (start, remote.read(content, start, end - start))
                for start, end in joined
            ]
            found.append((content.path.rpartition("/")[2], content.size_bytes, data))
        return found
