"""A listed trace as it is opened: its share of a merged one, and what its graphs captured.

Programs that record how they capture CUDA graphs write these traces into a folder
`capture_traces` beside the others: vLLM and sglang one for each batch size and rank.
"""

# ruff: noqa: PTH118, PTH120
# os.path: pathlib would change the URLs that paths at a store are.

from __future__ import annotations

import logging
import os
from itertools import islice
from typing import TYPE_CHECKING, Final

from memboard.tb_plugin import storage
from memboard.tb_plugin.analysis.operators.captured import captured_graphs, num_unknown
from memboard.tb_plugin.analysis.operators.replayed import with_captured
from memboard.tb_plugin.analysis.ranks.share import share_of
from memboard.tb_plugin.formats.plain_files import PlainFile, plain_file
from memboard.tb_plugin.formats.traces import read_trace
from memboard.tb_plugin.formats.traces.files.heads import looks_like_trace
from memboard.tb_plugin.formats.traces.files.names import likelihood, parse_names
from memboard.tb_plugin.worker.cache import FileKey
from memboard.tb_plugin.worker.errors import ImportFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from memboard.tb_plugin.analysis.operators.captured import CapturedGraph
    from memboard.tb_plugin.analysis.trace.trace import Trace
    from memboard.tb_plugin.formats.traces.files.listing import FoundTrace
    from memboard.tb_plugin.worker.importer import Importer

_logger = logging.getLogger("memboard")

CAPTURES: Final = "capture_traces"
MAX_CAPTURES: Final = 16
"""Files of captures that are read for one trace, as long as a replay fits none."""


def read_listed_trace(
    trace: FoundTrace,
    importer: Importer,
    note: Callable[[float, str], None] = lambda _share, _doing: None,
) -> Callable[[], Trace]:
    """Read a file, and those beside it that it needs, and give what makes the trace.

    Args:
        trace: as it was listed.
        importer: reads the files.
        note: is told how far it is, from 0 to 1, and with what.

    Raises:
        ImportFailedError: there is no trace; its parts say why.
    """
    read = read_trace(
        trace.path,
        importer,
        listed=trace.key,
        note=lambda share: note(share, "reading the file"),
    )

    def make() -> Trace:
        return share_of(read(), trace.rank) if trace.is_share else read()

    captures = [*islice(_captures_beside(trace), MAX_CAPTURES + 1)]
    graphs: list[CapturedGraph] = []
    num_read = 0
    replaying = make() if captures else None
    for capture in captures[:MAX_CAPTURES]:
        if replaying is None or not num_unknown(replaying, graphs):
            break
        note(num_read / len(captures), "reading what its graphs captured")
        num_read += 1
        try:
            graphs += captured_graphs(
                read_trace(capture.path, importer, listed=FileKey.of(capture.status))()
            )
        except (ImportFailedError, OSError):
            _logger.info("the capture %s cannot be read", capture.path)
    are_all = num_read == len(captures)

    def with_graphs() -> Trace:
        made = make()
        return with_captured(made, [*captured_graphs(made), *graphs], are_all=are_all)

    return with_graphs


def _captures_beside(trace: FoundTrace) -> Iterator[PlainFile]:
    """Traces of captures of a trace's rank, by name; none at a store that lists late.

    No link is followed: it could lead to any folder of this machine.
    """
    folder = os.path.join(os.path.dirname(trace.path), CAPTURES)
    try:
        files = storage.at(folder)
        if files.realpath(folder) != folder:
            return
        with files.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries)
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        rank = parse_names(name).rank
        is_its_own = rank is None or trace.rank is None or rank == trace.rank
        try:
            if not is_its_own or likelihood(name) == "no" or not looks_like_trace(path):
                continue
            capture = plain_file(path, None, lambda _name: True)
        except OSError:
            continue
        if isinstance(capture, PlainFile):
            yield capture
