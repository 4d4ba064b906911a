"""Captures around one call: hook values, saved activations, histories.

Captures come from files, and files may hold anything: what is not of its type is left
out, what points nowhere too, and texts are cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from collector.format.errors import FormatError
from tb_plugin.analysis.findings.text import size_text
from tb_plugin.analysis.series.functions import unit_of
from tb_plugin.api.calls import ModuleValues, ValueColumn
from tb_plugin.contract.wire import f64
from tb_plugin.formats.recording.captures import read_capture
from tb_plugin.jobs.history_list import reference_of_capture, reference_of_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from collector.format.records import Capture, CaptureTable
    from tb_plugin.api.base import Unit
    from tb_plugin.api.calls import HistoryReference
    from tb_plugin.formats.memprofiler.names import FunctionKey
    from tb_plugin.formats.recording.functions import Entry
    from tb_plugin.index.run import Run

MAX_HISTORIES: Final = 1000

_MAX_ATTRIBUTES: Final = 100
_MAX_TEXT: Final = 1000
_OUTSIDE: Final = -1
_SAVED: Final[tuple[tuple[str, str, Unit, str], ...]] = (
    ("num_tensors", "Tensors", "count", ""),
    (
        "bytes",
        "Saved bytes",
        "bytes",
        (
            "Of distinct storages, without parameters and their views; a storage counts"
            " for the module that saved it first"
        ),
    ),
    (
        "npp_compat_bytes",
        "npp_compat",
        "bytes",
        (
            "The sum that MemProfiler reports: every tensor that is not a parameter"
            " counts, also twice"
        ),
    ),
)
"""Columns of saved activations: name, title, unit and what they are."""


def hook_values(
    entries: Sequence[Entry], key: FunctionKey, attempt: int, iteration: int
) -> Iterator[ModuleValues]:
    """What hooks said of every module, where there is such a capture."""
    capture = _read("hooks", entries, key, attempt, iteration)
    if capture is None:
        return
    table = capture.tables.get("values", {})
    name, type_, sane = _of_modules(capture, _ints(table, "module"), lowest=0)
    names = [own for own in table if own != "module"][:_MAX_ATTRIBUTES]
    yield ModuleValues(
        kind="hooks",
        title="Values of hooks, by module",
        facts="in order of the model",
        empty="The model has no modules with values.",
        incomplete=capture.meta.get("incomplete") is True,
        name=name,
        type=type_,
        columns=tuple(
            ValueColumn(
                key=own[:_MAX_TEXT],
                title=own[:_MAX_TEXT],
                unit=unit_of(f"hook.{own}"),
                signed=own.endswith("diff"),
                values=f64(_floats(table, own, len(sane))[sane]),
            )
            for own in names
        ),
    )


def saved_activations(
    entries: Sequence[Entry], key: FunctionKey, attempt: int, iteration: int
) -> Iterator[ModuleValues]:
    """What autograd saved by module and dtype, where there is such a capture."""
    capture = _read("activations", entries, key, attempt, iteration)
    if capture is None:
        return
    table = capture.tables.get("saved", {})
    name, type_, sane = _of_modules(capture, _ints(table, "module"), lowest=_OUTSIDE)
    dtype = np.array(_texts(table, "dtype", len(sane)), object)
    held = {key: _floats(table, key, len(sane))[sane] for key, *_ in _SAVED}
    saved = size_text(_total(capture.meta, "bytes", held))
    compatible = size_text(_total(capture.meta, "npp_compat_bytes", held))
    yield ModuleValues(
        kind="activations",
        title="Activations saved for backward",
        facts=f"{saved} saved · npp_compat {compatible}",
        empty="Nothing was saved for backward in this call.",
        incomplete=capture.meta.get("incomplete") is True,
        name=name,
        type=type_,
        dtype=tuple(dtype[sane].tolist()),
        columns=tuple(
            ValueColumn(
                key=key, title=title, hint=hint, unit=unit, values=f64(held[key])
            )
            for key, title, unit, hint in _SAVED
        ),
        sort="bytes",
    )


def histories(
    run: Run, rank: int, entries: Sequence[Entry]
) -> tuple[HistoryReference, ...]:
    """A rank's captured histories in order of time, the newest of them."""
    found = [
        reference_of_capture(file, attempt, entry)
        for attempt, file, entry in entries
        if entry.kind == "history"
    ]
    files = run.snapshots.of_rank(rank)[-MAX_HISTORIES:]
    found += [reference_of_file(file) for file in files]
    found.sort(key=lambda reference: reference.time_ms)
    return tuple(found[-MAX_HISTORIES:])


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


def _ints(table: CaptureTable, name: str) -> npt.NDArray[np.int64]:
    """A column of numbers; empty where it is none."""
    values = table.get(name)
    if isinstance(values, np.ndarray) and values.dtype == np.int64:
        return np.asarray(values, np.int64)
    return np.empty(0, np.int64)


def _floats(table: CaptureTable, name: str, length: int) -> npt.NDArray[np.float64]:
    """A column as floats; NaN where it is none, and where it is not finite."""
    values = table.get(name)
    if not isinstance(values, np.ndarray) or len(values) != length:
        return np.full(length, np.nan)
    floats = np.asarray(values, np.float64)
    return np.where(np.isfinite(floats), floats, np.nan)


def _texts(table: CaptureTable, name: str, length: int) -> list[str]:
    values = table.get(name)
    if not isinstance(values, tuple) or len(values) != length:
        return [""] * length
    return [text[:_MAX_TEXT] for text in values]


def _total(
    meta: Mapping[str, Any], name: str, held: Mapping[str, npt.NDArray[np.float64]]
) -> float:
    """The total the capture says, or else the sum of its rows."""
    said = meta.get(name)
    if type(said) is int and abs(said) < 2**63:
        return float(said)
    return float(np.nansum(held[name]))
