"""Captures around one call: hook values, saved activations, histories.

Captures come from files, and files may hold anything: what is not of its type is left
out, what points nowhere too, and texts are cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.format.errors import FormatError
from memboard.tb_plugin.analysis.findings.text import size_text
from memboard.tb_plugin.analysis.series.functions import unit_of
from memboard.tb_plugin.analysis.series.labels import hook_label
from memboard.tb_plugin.api.memory.calls import ModuleValues
from memboard.tb_plugin.api.tables import TableRows
from memboard.tb_plugin.contract.table import Column, rows_of, titled
from memboard.tb_plugin.formats.recording.captures.reading import read_capture
from memboard.tb_plugin.index.history_list import (
    reference_of_capture,
    reference_of_file,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from memboard.collector.format.records import Capture, CaptureTable
    from memboard.tb_plugin.api.memory.calls import HistoryReference
    from memboard.tb_plugin.api.tables import ColumnUnit
    from memboard.tb_plugin.formats.memprofiler.names import FunctionKey
    from memboard.tb_plugin.formats.recording.functions import Entry
    from memboard.tb_plugin.index.run import Run

MAX_HISTORIES: Final = 1000

_MAX_ATTRIBUTES: Final = 100
_MAX_TEXT: Final = 1000
_OUTSIDE: Final = -1
_MODULE: Final = Column("module", "Module", unit="name")
_TYPE: Final = Column("type", "", unit="text")
_DTYPE: Final = Column("dtype", "Dtype", unit="text")
_SAVED: Final = (
    Column("num_tensors", "Tensors"),
    Column(
        "bytes",
        "Saved bytes",
        unit="bytes",
        help="Of distinct storages, without parameters and their views; a storage counts for the"
        " module that saved it first",
        bar="activation",
    ),
    Column(
        "npp_compat_bytes",
        "MemProfiler's sum",
        unit="bytes",
        help="The sum that MemProfiler reports: every tensor that is not a parameter counts, also"
        " twice",
    ),
)


def hook_values(
    entries: Sequence[Entry], key: FunctionKey, attempt: int, iteration: int
) -> Iterator[ModuleValues]:
    """What hooks said of every module, where there is such a capture."""
    capture = _read("hooks", entries, key, attempt, iteration)
    if capture is None:
        return
    table = capture.tables.get("values", {})
    module_names, type_, sane = _of_modules(capture, _ints(table, "module"), lowest=0)
    names = [own for own in table if own != "module"][:_MAX_ATTRIBUTES]
    yield ModuleValues(
        kind="hooks",
        incomplete=capture.meta.get("incomplete") is True,
        table=titled(
            _by_module(
                module_names,
                type_,
                {_of_hook(own): _floats(table, own, len(sane))[sane] for own in names},
                usual="",
            ),
            "Values of hooks, by module",
            f"iteration {iteration:,}, in order of the model",
            "The model has no modules with values.",
        ),
    )


def _of_hook(hook: str) -> Column:
    is_bytes = unit_of(f"hook.{hook}") == "bytes"
    hook = hook[:_MAX_TEXT]
    unit: ColumnUnit = "bytes" if is_bytes else "count"
    if hook.endswith("diff"):
        unit = "change_bytes" if is_bytes else "change"
    sums = " (MemProfiler's sum of saved tensors)" if hook.startswith("npp_") else ""
    return Column(
        hook,
        hook_label(hook),
        unit=unit,
        help=f"The hooks' {hook}{sums}",
        absent="no value",
    )


def _by_module(
    module_names: Sequence[str],
    type_: Sequence[str],
    more: Mapping[Column, Iterable[Any]],
    usual: str,
) -> TableRows:
    notes = tuple(
        "" if full_type == own else full_type
        for full_type, own in zip(type_, module_names, strict=True)
    )
    columns = [
        _MODULE.sent(module_names, notes=notes),
        *(column.sent(own) for column, own in more.items()),
    ]
    return TableRows(
        columns=(*columns, _TYPE.sent(type_)),
        num_rows=len(module_names),
        num_all=len(module_names),
        usual=usual,
    )


def saved_activations(
    entries: Sequence[Entry], key: FunctionKey, attempt: int, iteration: int
) -> Iterator[ModuleValues]:
    """What autograd saved by module and dtype, where there is such a capture."""
    capture = _read("activations", entries, key, attempt, iteration)
    if capture is None:
        return
    table = capture.tables.get("saved", {})
    module_names, type_, sane = _of_modules(
        capture, _ints(table, "module"), lowest=_OUTSIDE
    )
    dtype = np.array(_texts(table, "dtype", len(sane)), object)
    values_by_key = {
        column.key: _floats(table, column.key, len(sane))[sane] for column in _SAVED
    }
    saved = size_text(_total(capture.meta, "bytes", values_by_key))
    compatible = size_text(_total(capture.meta, "npp_compat_bytes", values_by_key))
    yield ModuleValues(
        kind="activations",
        incomplete=capture.meta.get("incomplete") is True,
        table=titled(
            _by_module(
                module_names,
                type_,
                {
                    _DTYPE: dtype[sane].tolist(),
                    **{column: values_by_key[column.key] for column in _SAVED},
                },
                usual="bytes",
            ),
            "Activations saved for backward",
            f"iteration {iteration:,}, {saved} saved · MemProfiler's sum {compatible}",
            "Nothing was saved for backward in this call.",
        ),
    )


def histories(
    run: Run, rank: int, entries: Sequence[Entry]
) -> tuple[HistoryReference, ...]:
    """A rank's captured histories in order of time, the newest of them."""
    references = [
        reference_of_capture(file, attempt, entry)
        for attempt, file, entry in entries
        if entry.kind == "history"
    ]
    files = run.snapshots.of_rank(rank)[-MAX_HISTORIES:]
    references += [reference_of_file(file) for file in files]
    references.sort(key=lambda reference: reference.time_ms)
    return tuple(references[-MAX_HISTORIES:])


_HISTORY: Final = (
    Column(
        "history",
        "History",
        unit="text",
        help="A click opens it in Blocks",
        value=lambda reference: reference.title,
    ),
    Column(
        "step",
        "Step",
        help="The training step in which it was taken",
        absent="Not recorded",
    ),
    Column(
        "taken_ms",
        "Taken",
        unit="instant",
        help="When it was taken; a file: when it was last written",
        value=lambda reference: reference.time_ms,
    ),
    Column(
        "size_bytes",
        "Size",
        unit="bytes",
        help="Of the recording or of the file",
        value=lambda reference: reference.num_bytes,
    ),
    Column(
        "path",
        "Where it is",
        unit="text",
        help="Below the log directory",
        absent="Not a file of its own",
        absent_text="in the rank's recording",
    ),
)


def history_table(references: Sequence[HistoryReference], num_own: int) -> TableRows:
    """Captured histories of a rank; the first `num_own` were taken around the call."""
    ranks = {reference.rank for reference in references} - {None}
    on_rank = f" on rank {ranks.pop()}" if len(ranks) == 1 else ""
    notes = tuple(
        "· this call" if row < num_own else "" for row in range(len(references))
    )
    return titled(
        rows_of(_HISTORY, references, usual="", history={"notes": notes}),
        "Allocator histories",
        f"{len(references):,} captured{on_rank}",
    )


def _read(
    kind: str,
    entries: Sequence[Entry],
    key: FunctionKey,
    attempt: int,
    iteration: int,
) -> Capture | None:
    """The newest capture of a kind around one call; a damaged one is a fault by now."""
    for of_attempt, file, entry in reversed(entries):
        if (
            entry.kind == kind
            and of_attempt == attempt
            and (entry.function, entry.phase, entry.iteration) == (*key, iteration)
        ):
            try:
                return read_capture(file, entry)
            except (FormatError, OSError):
                return None
    return None


def _of_modules(
    capture: Capture, module: npt.NDArray[np.int64], *, lowest: int
) -> tuple[tuple[str, ...], tuple[str, ...], npt.NDArray[np.bool_]]:
    """Names and types of rows, and which rows point somewhere."""
    table = capture.tables.get("modules", {})
    paths = table.get("path")
    num = len(paths) if isinstance(paths, tuple) else 0
    types = [*_texts(table, "type", num), ""]
    # The root's path is empty: it is called by its class.
    names = [
        path or type_ or "root"
        for path, type_ in zip(_texts(table, "path", num), types, strict=False)
    ]
    names.append("outside any module")
    sane = (module >= lowest) & (module < num)
    rows = module[sane].tolist()
    return tuple(names[row] for row in rows), tuple(types[row] for row in rows), sane


def _ints(table: CaptureTable, key: str) -> npt.NDArray[np.int64]:
    """A column of numbers; empty where it is none."""
    values = table.get(key)
    if isinstance(values, np.ndarray) and values.dtype == np.int64:
        return np.asarray(values, np.int64)
    return np.empty(0, np.int64)


def _floats(table: CaptureTable, key: str, length: int) -> npt.NDArray[np.float64]:
    """A column as floats; NaN where it is none, and where it is not finite."""
    values = table.get(key)
    if not isinstance(values, np.ndarray) or len(values) != length:
        return np.full(length, np.nan)
    floats = np.asarray(values, np.float64)
    return np.where(np.isfinite(floats), floats, np.nan)


def _texts(table: CaptureTable, key: str, length: int) -> list[str]:
    values = table.get(key)
    if not isinstance(values, tuple) or len(values) != length:
        return [""] * length
    return [text[:_MAX_TEXT] for text in values]


def _total(
    meta: Mapping[str, Any],
    key: str,
    values_by_key: Mapping[str, npt.NDArray[np.float64]],
) -> float:
    """The total the capture says, or else the sum of its rows."""
    total = meta.get(key)
    if type(total) is int and abs(total) < 2**63:
        return float(total)
    return float(np.nansum(values_by_key[key]))
