"""The recorder's slices of a trace become slices of its name: see `own.slices`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from memboard.collector.format.own.frames import RECORDER
from memboard.collector.format.own.slices import (
    OPERATOR,
    HostSlices,
    folded,
    has_own,
    kinds,
    relinked,
    tracks_modules,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.trace.build import PlacedSlices
    from memboard.tb_plugin.formats.traces.columns.gathering import Gathering

    Ints: TypeAlias = npt.NDArray[Any]
    Columns: TypeAlias = dict[str, Any]

_LINKED: Final = ("launches", "device_work")


def without_recorder(
    slices: Columns,
    placed: PlacedSlices,
    gathered: Gathering,
    metadata: Mapping[str, Any],
) -> Columns | None:
    """The slices with the recorder's folded; None where none is the recorder's.

    Args:
        slices: as they were gathered.
        placed: the same where they belong.
        gathered: whose tables of details lose those that are dropped.
        metadata: of the trace.
    """
    names = gathered.texts.all
    if not has_own(names, metadata):
        return None
    rows = placed.slices
    fold = folded(
        names,
        HostSlices(
            name=rows.name,
            kind=kinds(names, names, rows.name, rows.category),
            parent=rows.parent,
            level=rows.level,
            start_ns=rows.start_ns,
            end_ns=rows.ends(),
        ),
        is_tracked=tracks_modules(metadata),
    )
    if fold.stays.all():
        return None
    _link(gathered, placed, fold.repeats)
    stays = fold.stays[placed.row_of]
    gathered.keep_details(stays)
    num = len(fold.root)
    pieces = {
        "track": rows.track[fold.root],
        "start_ns": fold.start_ns,
        "duration_ns": fold.end_ns - fold.start_ns,
        "name": np.full(num, gathered.texts[RECORDER]),
        "category": np.full(num, gathered.texts[OPERATOR]),
        "args": np.full(num, -1),
    }
    return {
        column_name: np.concatenate(
            (column[stays], pieces[column_name].astype(column.dtype))
        )
        for column_name, column in slices.items()
    }


def _link(gathered: Gathering, placed: PlacedSlices, repeats: Ints) -> None:
    """What a repeated call launched is of the call that it repeats."""
    operators = gathered.tables["operators"]
    if not len(operators):
        return
    ids = np.zeros(len(repeats), np.int64)
    ids[placed.row_of[operators.peek("slice")]] = operators.peek("external_id")
    repeated = np.flatnonzero((repeats != -1) & (ids > 0))
    for table_name in _LINKED:
        table = gathered.tables[table_name]
        if len(table):
            linked = table.take("external_id")
            table.put(
                "external_id",
                relinked(linked, ids[repeated], ids[repeats[repeated]]),
            )
