"""Results of replaying a history, in the cache of columns beside its tables.

Pairing millions of allocations with their frees takes longer than all else of opening a
file again. What comes of it is mapped in the types it is used in: nothing is copied, and
memory that no picture touches is none of this process's.

Nothing cached is believed: it has to be of this very content and of the versions that
would make it now, whole, and such that every number leads somewhere. Else it is made
again.
"""

from __future__ import annotations

import hashlib
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
import numpy as np

from memboard.collector.format.memory import CATEGORIES
from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.allocator.lifetimes import BEFORE, Levels, Lifetimes
from memboard.tb_plugin.analysis.allocator.replay import VERSION
from memboard.tb_plugin.analysis.allocator.rounding import Rests
from memboard.tb_plugin.analysis.allocator.segment_spans import ReservedLevels
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.categories.attribution import EVIDENCE, Attribution
from memboard.tb_plugin.analysis.snapshots.marks import KINDS, Marks
from memboard.tb_plugin.jobs.open_history import DeviceReplay
from memboard.tb_plugin.worker.cache import FileKey
from memboard.tb_plugin.worker.columns import NotColumnsError, write_columns
from memboard.tb_plugin.worker.limits import SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from memboard.collector.format.records import CaptureTable
    from memboard.tb_plugin.analysis.snapshots.snapshot import DeviceSnapshot, Snapshot
    from memboard.tb_plugin.jobs.open_history import OpenDevice, OpenHistory
    from memboard.tb_plugin.worker.cache import ColumnCache
    from memboard.tb_plugin.worker.columns import Table

    Ints: TypeAlias = npt.NDArray[Any]

_logger = logging.getLogger(__name__)

MIN_EVENTS: Final = 200_000
"""Of all devices: fewer are replayed in no time."""

CACHED_AS: Final = f"replay {SNAPSHOT.version}.{VERSION}"

_KEY_BYTES: Final = 7
"""Of each half of a key of content: what a number of JSON holds."""

_LIVES: Final = ("addr", "size", "stack", "born", "freed", "gone")
_LEVELS: Final = ("active", "allocated", "reserved")
_RESTS: Final = ("life", "num_bytes")
_MARKS: Final = ("kind", "moment", "end", "label")
_MARK_FLOATS: Final = ("num_bytes", "device_free", "step")


class _Device(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What belongs to a device besides its columns."""

    device: int
    num_lost: int
    first: dict[str, int]
    """By level: bytes before the first event."""
    num_below_zero: int
    oddities: dict[str, int]


class _Meta(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    key: tuple[int, ...]
    version: str
    devices: list[_Device]


class _UnfitError(Exception):
    """It is not what replaying this snapshot comes to."""


def _ensure(is_fit: bool, mismatch: str) -> None:
    if not is_fit:
        raise _UnfitError(mismatch)


def is_worth_caching(snapshot: Snapshot) -> bool:
    """Whether replaying it takes long."""
    return sum(len(device.events) for device in snapshot.devices) >= MIN_EVENTS


def key_of_content(tables: Mapping[str, CaptureTable]) -> FileKey:
    """A key of what a capture's tables hold, wherever they lie: 0.1 s per 100 MB."""
    digest = hashlib.blake2b(digest_size=2 * _KEY_BYTES)
    for table_name, table in sorted(tables.items()):
        for key, column in sorted(table.items()):
            digest.update(f"{table_name}\0{key}\0{len(column)}\0".encode())
            if isinstance(column, np.ndarray):
                digest.update(column.dtype.str.encode())
                digest.update(np.ascontiguousarray(column).data)
            else:
                digest.update(np.array([len(text) for text in column], np.int64).data)
                digest.update("".join(column).encode("utf-8", "surrogatepass"))
    hashed = digest.digest()
    first, second = hashed[:_KEY_BYTES], hashed[_KEY_BYTES:]
    return FileKey(0, int.from_bytes(first, "little"), 0, int.from_bytes(second, "big"))


def read_replays(
    cache: ColumnCache, key: FileKey, snapshot: Snapshot
) -> dict[int, DeviceReplay]:
    """By device, as they were cached; nothing where they are not there, or not right."""
    tables = cache.get(key, CACHED_AS)
    if tables is None:
        return {}
    try:
        meta = msgspec.convert(tables.meta, _Meta)
        about = {device.device: device for device in meta.devices}
        numbers = sorted(device.device for device in snapshot.devices)
        is_fit = (meta.key, meta.version) == (tuple(key), CACHED_AS)
        _ensure(is_fit, "it is of another file")
        _ensure(
            sorted(device.device for device in meta.devices) == numbers, "other devices"
        )
        return {
            device.device: _replayed(tables, about[device.device], snapshot, device)
            for device in snapshot.devices
        }
    except (_UnfitError, KeyError, TypeError, msgspec.ValidationError) as error:
        _logger.info("what replaying came to is made again: %r", error)
        return {}


def write_replays(cache: ColumnCache, key: FileKey, history: OpenHistory) -> None:
    """Cache what replaying a history came to, if that can be."""
    tables: dict[str, Table] = {}
    about = []
    for device in history.devices.values():
        levels = (device.active, device.allocated, device.reserved)
        about.append(
            _Device(
                device=device.number,
                num_lost=device.lives.num_lost,
                first={n: of.first for n, of in zip(_LEVELS, levels, strict=True)},
                num_below_zero=device.replay.reserved.num_below_zero,
                oddities=dict(device.oddities),
            )
        )
        tables.update(_tables(device))
    meta = msgspec.to_builtins(_Meta(tuple(key), CACHED_AS, about))
    try:
        cache.put(
            key,
            CACHED_AS,
            partial(write_columns, tables=tables, meta=meta, as_they_are=True),
        )
    except (OSError, ValueError, NotColumnsError) as error:
        _logger.info("what replaying came to is not cached: %s", error)


def _tables(device: OpenDevice) -> dict[str, Table]:
    number, lives, marks = device.number, device.lives, device.marks
    afters = (device.active.after, device.allocated.after, device.reserved.after)
    tables: dict[str, Table] = {
        f"lives {number}": {name: getattr(lives, name) for name in _LIVES},
        f"rests {number}": {
            name: getattr(device.replay.rests, name) for name in _RESTS
        },
        f"levels {number}": dict(zip(_LEVELS, afters, strict=True)),
        f"marks {number}": {
            name: getattr(marks, name) for name in (*_MARKS, *_MARK_FLOATS)
        },
        f"labels {number}": {"text": marks.labels},
    }
    attribution = device.attribution_so_far
    if attribution is not None:
        table = {"category": attribution.category, "evidence": attribution.evidence}
        if (attribution.tensor != NOTHING).any():
            table["tensor"] = attribution.tensor
        tables[f"attribution {number}"] = table
    return tables


def _replayed(
    tables: Mapping[str, Table],
    about: _Device,
    snapshot: Snapshot,
    device: DeviceSnapshot,
) -> DeviceReplay:
    number, num_events = device.device, len(device.events)
    lives = _lives(tables[f"lives {number}"], about, len(snapshot.stacks), num_events)
    after = {
        name: _column(tables[f"levels {number}"], name, num_events) for name in _LEVELS
    }
    levels = {name: Levels(about.first[name], after[name]) for name in _LEVELS}
    return DeviceReplay(
        lives=lives,
        rests=_rests(tables[f"rests {number}"], len(lives)),
        active=levels["active"],
        allocated=levels["allocated"],
        reserved=ReservedLevels(levels["reserved"], about.num_below_zero),
        marks=_marks(
            tables[f"marks {number}"], tables[f"labels {number}"]["text"], num_events
        ),
        oddities=about.oddities,
        attribution=_attribution(
            tables.get(f"attribution {number}"), len(lives), snapshot
        ),
    )


def _lives(table: Table, about: _Device, num_stacks: int, num_events: int) -> Lifetimes:
    num = len(table["addr"])
    columns = {name: _column(table, name, num) for name in _LIVES}
    _check(columns["stack"], NOTHING, num_stacks)
    _check(columns["born"], BEFORE, num_events)
    _check(columns["freed"], BEFORE, num_events + 1)
    _check(columns["gone"], BEFORE, num_events + 1)
    if (columns["born"][1:] < columns["born"][:-1]).any():
        raise _UnfitError("allocations are not in order")
    return Lifetimes(**columns, num_lost=about.num_lost)


def _rests(table: Table, num_lives: int) -> Rests:
    num = len(table["life"])
    columns = {name: _column(table, name, num) for name in _RESTS}
    _check(columns["life"], 0, num_lives)
    _check(columns["num_bytes"], NOTHING, np.iinfo(np.int64).max)
    if (columns["life"][1:] <= columns["life"][:-1]).any():
        raise _UnfitError("rests are not in order")
    return Rests(**columns)


def _marks(table: Table, labels: tuple[str, ...], num_events: int) -> Marks:
    num = len(table["kind"])
    columns = {name: _column(table, name, num) for name in _MARKS}
    floats = {name: _column(table, name, num, "f") for name in _MARK_FLOATS}
    _check(columns["kind"], 0, len(KINDS))
    _check(columns["moment"], BEFORE, num_events)
    _check(columns["end"], BEFORE, num_events)
    _check(columns["label"], 0, len(labels))
    return Marks(**columns, **floats, labels=labels)


def _attribution(
    table: Table | None, num_lives: int, snapshot: Snapshot
) -> Attribution | None:
    if table is None:
        return None
    category = _column(table, "category", num_lives)
    evidence = _column(table, "evidence", num_lives)
    _check(category, 0, len(CATEGORIES))
    _check(evidence, 0, len(EVIDENCE))
    if "tensor" not in table:
        nothing = np.broadcast_to(np.int64(NOTHING), num_lives)
        return Attribution(category, evidence, nothing)
    tensor, tensors = _column(table, "tensor", num_lives), snapshot.tensors
    _check(tensor, NOTHING, 0 if tensors is None else len(tensors.category))
    return Attribution(category, evidence, tensor)


def _column(table: Table, key: str, num: int, kinds: str = "iu") -> Ints:
    column = table[key]
    if not isinstance(column, np.ndarray) or column.dtype.kind not in kinds:
        raise _UnfitError(f"{key} is of another type")
    if len(column) != num:
        raise _UnfitError(f"{key} has {counted(len(column), 'row')}")
    return column


def _check(column: Ints, least: int, stop: int) -> None:
    if len(column) and not least <= int(column.min()) <= int(column.max()) < stop:
        raise _UnfitError("a number leads nowhere")
