"""All snaps of a rank's file: the page shows the newest of them, files hold them all."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin.analysis.series.functions import SnapTable
from tb_plugin.budget import Budget
from tb_plugin.cache import Cache
from tb_plugin.formats.recording.columns import as_values, read_chunks
from tb_plugin.formats.recording.directory import chunks_between
from tb_plugin.formats.recording.functions import TABLE_PREFIX

if TYPE_CHECKING:
    from collector.format.numeric import Values
    from collector.format.records import Schema
    from tb_plugin.formats.recording.rank_file import RankFile

_KEY: Final = ("time_ns", "step", "iteration", "context")


def has_snaps(file: RankFile) -> bool:
    """Whether there may be any."""
    return any(s.table.startswith(TABLE_PREFIX) for s in file.schemas.values())


def snaps_of(file: RankFile, attempt: int = 1) -> dict[tuple[str, str], SnapTable]:
    """Snaps by function and phase, in the order they were written."""
    pieces: dict[tuple[str, str], list[dict[str, Values]]] = {}
    for _, schema in sorted(file.schemas.items()):
        if schema.table.startswith(TABLE_PREFIX):
            key = (schema.table.removeprefix(TABLE_PREFIX), schema.phase)
            columns = _columns(file, schema)
            if columns is not None:
                pieces.setdefault(key, []).append(columns)
    return {key: _joined(of_key, attempt) for key, of_key in pieces.items()}


def _columns(file: RankFile, schema: Schema) -> dict[str, Values] | None:
    refs = chunks_between(
        file,
        schema.schema_id,
        "ns",
        -math.inf,
        math.inf,
        Cache(0),
        Budget(math.inf),
    )
    names = [column.name for column in schema.columns]
    if not refs or not set(_KEY) <= set(names):
        return None
    found = read_chunks(file, schema, refs, names)
    return {
        name: np.concatenate([as_values(name, part) for part in found[name]])
        for name in names
    }


def _joined(pieces: list[dict[str, Values]], attempt: int) -> SnapTable:
    """A table whose columns changed is several; what one has not is not recorded."""
    names = dict.fromkeys(name for piece in pieces for name in piece)
    lengths = [len(piece["step"]) for piece in pieces]
    joined = {
        name: np.concatenate(
            [
                np.asarray(piece[name], np.float64)
                if name in piece
                else np.full(length, np.nan)
                for piece, length in zip(pieces, lengths, strict=True)
            ]
        )
        for name in names
    }
    time_ns = np.concatenate([piece["time_ns"] for piece in pieces]).astype(np.int64)
    order = np.argsort(time_ns, kind="stable")
    return SnapTable(
        attempt=np.full(len(order), attempt, np.int64),
        iteration=_ints(joined["iteration"][order]),
        context=_ints(joined["context"][order]),
        time_ns=time_ns[order],
        step=_ints(joined["step"][order]),
        stats={n: joined[n][order] for n in names if n not in _KEY},
    )


def _ints(values: Values) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Whole numbers; -1 where damage cost one."""
    return np.nan_to_num(values, nan=-1.0).astype(np.int64)
