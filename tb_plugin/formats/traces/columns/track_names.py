"""Names and order of the threads, streams and counters of a trace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.trace.trace import Track
from memboard.tb_plugin.formats.traces.columns.gathering import table_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.trace.trace import TrackKind
    from memboard.tb_plugin.formats.traces.columns.gathering import Gathering

    Ints: TypeAlias = npt.NDArray[Any]
    Labels: TypeAlias = Mapping[tuple[str, str, str], Any]

_COUNTER: Final = "counter "
_ASYNC: Final = "async "
_RANK: Final = re.compile(r"\brank[ _]?(\d{1,7})\b", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d{1,18}")
_NO_PROCESS: Final = frozenset({"Spans", "Traces", ""})
_MOST: Final = 2**31 - 1
_WORDS: Final = "operator cpu_op user_annotation python_function"
_HOST: Final = frozenset(_WORDS.split())


class _TrackSlices:
    """What the slices of one track say of it."""

    def __init__(self) -> None:
        self.is_device = False
        self.is_host = False
        self.device = NOTHING
        self.stream = NOTHING


def tracks_of(
    gathered: Gathering,
    track: Ints,
    category: Ints,
    used: Ints,
    work: Mapping[int, tuple[int, int]],
    rank: int,
) -> tuple[tuple[Track, ...], Ints]:
    """The tracks in order, and the place of each that was gathered; -1: not used.

    Args:
        gathered: everything.
        track: (slices,) as gathered.
        category: (slices,)
        used: (tracks,) flags: whether anything lies on each.
        work: device and stream of what ran on a track, as its arguments say.
        rank: of the whole trace, or NOTHING.
    """
    seen = _seen(gathered, track, category)
    for number, (device, stream) in work.items():
        seen[number].device, seen[number].stream = _bounded(device), _bounded(stream)
    processes = _Processes(gathered.labels)
    made = [
        (number, _track(gathered, processes(ids[0]), ids, seen[number], rank))
        for number, ids in enumerate(gathered.tracks.ids)
        if used[number]
    ]
    orders = {
        pid: _order(gathered.labels.get(("process_sort_index", pid, tid)))
        for pid, tid in gathered.tracks.ids
        if ("process_sort_index", pid, tid) in gathered.labels
    }
    made.sort(key=lambda track_and_number: _place(track_and_number[1], orders))
    place = np.full(len(gathered.tracks.ids), NOTHING, np.int64)
    for index, (number, _) in enumerate(made):
        place[number] = index
    return tuple(track for _, track in made), place


def _seen(gathered: Gathering, track: Ints, category: Ints) -> list[_TrackSlices]:
    slices_by_track = [_TrackSlices() for _ in gathered.tracks.ids]
    num = len(gathered.texts.all)
    for pair in np.unique(track.astype(np.int64) * num + category).tolist():
        category_name = gathered.texts.all[pair % num]
        track_slices = slices_by_track[pair // num]
        track_slices.is_device |= table_of(
            category_name
        ) == "device_work" or category_name.startswith("gpu_")
        track_slices.is_host |= (
            category_name.lower() in _HOST or table_of(category_name) == "launches"
        )
    return slices_by_track


def _track(
    gathered: Gathering,
    process: str,
    ids: tuple[str, str],
    seen: _TrackSlices,
    rank: int,
) -> Track:
    labels = gathered.labels
    pid, tid = ids
    named = _RANK.search(process)
    if rank == NOTHING and named is not None:
        rank = int(named[1])
    for prefix, kind in ((_COUNTER, "counter"), (_ASYNC, "span")):
        if tid.startswith(prefix):
            track_name = tid[len(prefix) :].strip() or "unnamed"
            of: TrackKind = "counter" if kind == "counter" else "span"
            return Track(track_name, process, of, rank, pid, tid)
    kind_: TrackKind = "span"
    if seen.is_device and not seen.is_host:
        kind_ = "device"
    elif seen.is_host:
        kind_ = "host"
    elif pid in _NO_PROCESS:
        kind_ = "other"
    track_name = _text(labels.get(("thread_name", pid, tid)))
    if not track_name:
        track_name = tid if not tid.isdigit() else f"thread {tid}"
        if kind_ == "device" and tid.isdigit():
            track_name = f"stream {tid}"
    device, stream = NOTHING, NOTHING
    if kind_ == "device":
        device = seen.device if seen.device != NOTHING else _number(pid)
        stream = seen.stream if seen.stream != NOTHING else _number(tid)
    order = _order(labels.get(("thread_sort_index", pid, tid)))
    return Track(
        track_name or "unnamed", process, kind_, rank, pid, tid, device, stream, order
    )


class _Processes:
    """`python 123 (GPU 0)`, as far as it is known, by process id."""

    def __init__(self, labels: Labels) -> None:
        self._names: dict[tuple[str, str], str] = {
            (kind, pid): _text(value) for (kind, pid, _), value in labels.items()
        }

    def __call__(self, pid: str) -> str:
        process_name = self._names.get(("process_name", pid), "")
        label = self._names.get(("process_labels", pid), "")
        process = " ".join(part for part in (process_name, pid) if part)
        return f"{process} ({label})" if label else process


def _place(track: Track, orders: Mapping[str, int]) -> tuple[Any, ...]:
    counter = track.kind == "counter"
    return (
        orders.get(track.pid, 0 if track.pid not in _NO_PROCESS else _MOST),
        _natural(track.pid),
        counter,
        track.sort_index,
        _natural(track.tid),
    )


def _natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Numbers before words, and by their value."""
    return tuple(
        (0, int(part), "") if part.isdigit() and part.isascii() else (1, 0, part)
        for part in re.split(r"(\d{1,18})", text)
        if part
    )


def _number(text: str) -> int:
    match = _NUMBER.search(text)
    return _bounded(int(match[0])) if match else NOTHING


def _bounded(number: int) -> int:
    return number if 0 <= number <= _MOST else NOTHING


def _order(value: Any) -> int:
    try:
        return max(-_MOST, min(_MOST, int(value)))
    except (TypeError, ValueError, OverflowError):
        return 0


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""
