"""An open file to the tables of a trace, within bounded memory."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.formats.traces import timelines
from memboard.tb_plugin.formats.traces.bytes.chunks import Chunks
from memboard.tb_plugin.formats.traces.bytes.decoding import ColumnDecoder
from memboard.tb_plugin.formats.traces.bytes.inflated import InflatedFile
from memboard.tb_plugin.formats.traces.bytes.refused import refused
from memboard.tb_plugin.formats.traces.columns.assembling import tables_of
from memboard.tb_plugin.formats.traces.columns.details import (
    BEYOND,
    MAX_TEXTS,
    MAX_TRACKS,
)
from memboard.tb_plugin.formats.traces.columns.gathering import Gathering
from memboard.tb_plugin.formats.traces.top_level import (
    base_of,
    facts_of,
    note_problems,
    refuse_no_events,
    top_level,
)
from memboard.tb_plugin.formats.traces.torch_clock import join_clocks
from memboard.tb_plugin.worker.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from memboard.tb_plugin.formats.traces.bytes.decoding import ColumnEvent

MAX_EVENTS: Final = 10_000_000
"""Of one trace that are shown: the first."""


def imported(
    file: IO[bytes], report: Callable[[float], None] | None = None
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The tables of a trace or a memory timeline; see `stored` for what they mean.

    Raises:
        RefusedError: it is neither.
        OSError: the file cannot be read.
    """
    stream = InflatedFile(file, report)
    chunks = Chunks(stream, ColumnDecoder())
    start = chunks.peek()
    if not start and stream.problem:
        raise RefusedError(
            stream.problem, 0, remedy="Copy it again, when it is written whole."
        )
    if not start:
        raise refused(start)
    gathered = Gathering()
    if timelines.is_timeline(start):
        facts = timelines.gather(start, stream, gathered)
        return tables_of(gathered, {}, facts, 0)
    places = _gather(chunks, gathered)
    around = chunks.around
    top, told = top_level(around)
    sentence = (
        f"texts beyond the first {MAX_TEXTS:,} different ones are shown as {BEYOND}"
    )
    gathered.problems.note(sentence, gathered.texts.num_beyond)
    sentence = (
        f"events of threads beyond the first {MAX_TRACKS:,} are shown as of one more"
    )
    gathered.problems.note(sentence, gathered.tracks.num_beyond)
    if stream.problem:
        gathered.problems.note(stream.problem, 1)
    else:
        refuse_no_events(around, gathered)
        sentence = "The file ends inside its list of events: it is incomplete."
        is_torn = not around.ended and not around.is_list
        gathered.problems.note(sentence, int(around.cut_off or is_torn))
    note_problems(around, gathered, told)
    facts, base_ns = facts_of(top), base_of(top)
    if base_ns is None and (added_ns := join_clocks(gathered)) is not None:
        facts["metadata"]["nanoseconds added to torch's times"] = added_ns
    return tables_of(gathered, places, facts, base_ns)


def _gather(chunks: Chunks[ColumnEvent], gathered: Gathering) -> dict[str, Any]:
    """All events; where they lie in the inflated file."""
    places: list[tuple[int, int, int]] = []
    for chunk in chunks:
        gathered.add(chunk)
        places.append((chunk.offset, chunk.num_bytes, chunk.first))
        if chunks.num_events >= MAX_EVENTS:
            sentence = (
                f"Only the first {counted(chunks.num_events, 'event')} are shown."
            )
            gathered.problems.note(sentence, 1)
            chunks.around.ended = True
            chunks.around.tail = b"" if chunks.around.is_list else b"}"
            break
    columns = np.array(places, np.int64).reshape(-1, 3).T
    return {"offset": columns[0], "num_bytes": columns[1], "first": columns[2]}
