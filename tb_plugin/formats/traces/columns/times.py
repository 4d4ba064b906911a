"""Times of events: exact nanoseconds, begins with their ends, and both ends of flows."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.trace.build import PlacedSlices
    from memboard.tb_plugin.formats.traces.columns.details import Growing, Problems

    Ints: TypeAlias = npt.NDArray[Any]
    Floats: TypeAlias = npt.NDArray[np.float64]
    Columns: TypeAlias = dict[str, np.ndarray[Any, Any]]


NO_TIME: Final = -(2**63)
"""Time of events without one, or with an impossible one."""
EXACT_BELOW_US: Final = 2.0**43
"""A float holds so many microseconds to less than half a nanosecond."""
_MOST_US: Final = 4e15
"""The year 2096, so that sums of two stay below 2**63 nanoseconds."""
_WIDE: Final = 25
_DIGITS: Final = 3
_FEW: Final = 64
_MOST_DIGITS: Final = 19
"""Of nanoseconds, if the first is below `_MOST_FIRST`: so `_MOST_US` is not reached."""
_MOST_FIRST: Final = 4
_DECIMALS: Final = re.compile(rb'"ts"\s*:\s*-?\d{13,}\.')
_MINUS, _DOT, _ZERO = b"-.0"


def from_floats(times_us: Floats) -> Ints:
    """Nanoseconds; exact for values below `EXACT_BELOW_US` of three decimals."""
    valid = np.abs(times_us) < _MOST_US  # False for NaN
    usual = bool(valid.all())
    times = times_us if usual else np.where(valid, times_us, 0.0)
    whole = np.floor(times)
    times_ns = whole.astype(np.int64) * 1000
    times_ns += np.rint((times - whole) * 1000).astype(np.int64)
    return times_ns if usual else np.where(valid, times_ns, NO_TIME)


def needs_digits(times_us: Floats, text: bytes) -> bool:
    """Whether floats may have lost decimals of these, which were read from a text."""
    large = times_us[np.abs(times_us) >= EXACT_BELOW_US]
    if not len(large):
        return False
    if (large != np.floor(large)).any():
        return True
    # Of a few, all may have been rounded to whole ones.
    return len(large) < _FEW and _DECIMALS.search(text) is not None


def from_digits(texts: Sequence[bytes]) -> Ints:
    """Nanoseconds of JSON numbers in microseconds, whatever their size."""
    if not texts:
        return np.empty(0, np.int64)
    lengths = {len(text) for text in texts}
    longest = max(lengths)
    from_equal_lengths = _alike(texts, longest) if len(lengths) == 1 else None
    if from_equal_lengths is not None:
        return from_equal_lengths
    if longest > _WIDE:
        return np.array([_one(text) for text in texts], np.int64)
    letters = np.array(texts, f"S{_WIDE}").view(np.uint8).reshape(-1, _WIDE)
    value = np.zeros(len(texts), np.int64)
    decimals = np.zeros(len(texts), np.int64)
    after = np.zeros(len(texts), np.bool_)
    odd = np.array([not text for text in texts])
    for place in range(_WIDE):
        letter = letters[:, place]
        if not letter.any():
            break
        is_digit = (letter >= _ZERO) & (letter <= _ZERO + 9)
        taken = is_digit & (~after | (decimals < _DIGITS))
        odd |= taken & (value > _MOST_US * 100)
        value = np.where(taken & ~odd, value * 10 + (letter - _ZERO), value)
        decimals += taken & after
        is_dot = letter == _DOT
        is_minus = (letter == _MINUS) & (place == 0)
        odd |= (letter != 0) & ~is_digit & ~is_dot & ~is_minus
        after |= is_dot
    odd |= value > _MOST_US * 10.0**decimals
    value = np.where(odd, 0, value) * 10 ** (_DIGITS - decimals)
    value = np.where(letters[:, 0] == _MINUS, -value, value)
    for row in np.flatnonzero(odd).tolist():
        value[row] = _one(texts[row])
    return value


def _alike(texts: Sequence[bytes], length: int) -> Ints | None:
    """Times that all have so many letters and three decimals; None: they have not."""
    digits = length - 1
    if not _DIGITS < digits <= _MOST_DIGITS:
        return None
    letters = np.frombuffer(b"".join(texts), np.uint8).reshape(-1, length)
    point = length - _DIGITS - 1
    values = np.delete(letters, point, axis=1) - _ZERO  # below it wraps round, above 9
    if (letters[:, point] != _DOT).any() or (values > 9).any():
        return None
    if digits == _MOST_DIGITS and (values[:, 0] >= _MOST_FIRST).any():
        return None
    return values @ 10 ** np.arange(digits - 1, -1, -1, dtype=np.int64)


def _one(text: Any) -> int:
    """One time: quoted, with an exponent, or none at all."""
    try:
        time_us = Decimal(bytes(text).strip(b'" \t\r\n').decode("ascii"))
        if not time_us.is_finite() or abs(time_us) >= Decimal(_MOST_US):
            return NO_TIME
        return int((time_us * 1000).to_integral_value())
    except (ArithmeticError, UnicodeDecodeError, ValueError):
        return NO_TIME


_KEPT = ("track", "name", "category", "args")
_UNBEGUN: Final = "ends of what never began are not shown"


def slices_of(edges: Growing, end_ns: int, problems: Problems) -> Columns | None:
    """The slices that begin and end events make; None without any.

    An end belongs to the last of its thread that began and has not ended, or, where
    events carry an id, to the one of that id; one that has a name, to the last of that
    name, and ends what began inside. What never ended lasts until `end_ns`.
    """
    if not len(edges):
        return None
    columns = {name: edges.take(name) for name in edges.names()}
    order = np.lexsort(
        (columns["number"], columns["time_ns"], columns["pair"], columns["track"])
    )
    keys = zip(
        columns["track"][order].tolist(), columns["pair"][order].tolist(), strict=True
    )
    signs = columns["sign"][order].tolist()
    times = columns["time_ns"][order].tolist()
    numbers = columns["number"][order].tolist()
    names = columns["name"][order].tolist()
    begun: list[int] = []
    """Places of what has begun and not ended."""
    num_begun: Counter[int] = Counter()
    of: tuple[int, int] | None = None
    made: list[tuple[int, int]] = []
    unended = 0
    for place, key in enumerate(keys):
        if key != of:
            unended += len(begun)
            made += [(place_begun, end_ns) for place_begun in begun]
            begun, of = [], key
            num_begun.clear()
        if signs[place] > 0:
            begun.append(place)
            num_begun[names[place]] += 1
            continue
        begun_name = names[place] or (names[begun[-1]] if begun else 0)
        if not num_begun[begun_name]:
            problems.note(_UNBEGUN, 1, f"event {numbers[place]}", is_usual=True)
            continue
        is_ended = False
        while not is_ended:
            place_begun = begun.pop()
            made.append((place_begun, times[place]))
            num_begun[names[place_begun]] -= 1
            is_ended = names[place_begun] == begun_name
    unended += len(begun)
    made += [(place_begun, end_ns) for place_begun in begun]
    sentence = "slices that never ended are shown until the trace's end"
    problems.note(sentence, unended, is_usual=True)
    made.sort()
    places = order[np.array([place for place, _ in made], np.int64)]
    ends = np.array([end for _, end in made], np.int64)
    slices = {name: columns[name][places] for name in _KEPT}
    slices["start_ns"] = columns["time_ns"][places]
    slices["duration_ns"] = np.maximum(ends - slices["start_ns"], 0)
    return slices


_START, _STEP, _END = 0, 1, 2


def arrows_of(flows: Growing, track_of: Ints, placed: PlacedSlices) -> dict[str, Ints]:
    """The columns of `trace.Flows`.

    Each step and end of a flow is reached from the last point of it before; an end that
    comes before every start, as clocks of hosts and devices differ, from the first.

    Args:
        flows: what was gathered.
        track_of: the track by the number that was gathered.
        placed: the slices.
    """
    columns = {
        name: flows.take(name)
        for name in ("step", "track", "time_ns", "category", "id")
    }
    leaves = np.flatnonzero(columns["step"] != _END)
    arrives = np.flatnonzero(columns["step"] != _START)
    point = np.concatenate((arrives, leaves))
    is_leaving = np.concatenate(
        (np.zeros(len(arrives), np.bool_), np.ones(len(leaves), np.bool_))
    )
    # A start comes before what it reaches at the same time; a step arrives before it
    # leaves.
    rank = np.where(columns["step"][point] == _START, 0, 1 + is_leaving)
    order = np.lexsort(
        (
            rank,
            columns["time_ns"][point],
            columns["id"][point],
            columns["category"][point],
        )
    )
    point, is_leaving = point[order], is_leaving[order]
    place = np.arange(len(point))
    group = np.concatenate(
        (
            [0],
            np.cumsum(
                (np.diff(columns["category"][point]) != 0)
                | (np.diff(columns["id"][point]) != 0)
            ),
        )
    )[: len(point)]
    before = np.maximum.accumulate(np.where(is_leaving, place, -1))
    after = np.minimum.accumulate(np.where(is_leaving, place, len(point))[::-1])[::-1]
    ends = np.flatnonzero(~is_leaving)
    source = before[ends]
    ok = (source >= 0) & (group[source] == group[ends])
    late = np.minimum(after[ends], max(len(point) - 1, 0))
    ok_late = ~ok & (after[ends] < len(point)) & (group[late] == group[ends])
    source = np.where(ok, source, np.where(ok_late, late, -1))
    is_inside = source >= 0
    start, stop = point[source[is_inside]], point[ends[is_inside]]
    track = track_of[columns["track"]]
    rows = rows_at(placed, track, columns["time_ns"])
    made = {
        "category": columns["category"][start],
        "from_row": rows[start],
        "to_row": rows[stop],
        "from_track": track[start],
        "to_track": track[stop],
        "from_ns": columns["time_ns"][start],
    }
    order = np.argsort(made["from_ns"], kind="stable")
    return {name: column[order] for name, column in made.items()}


def rows_at(placed: PlacedSlices, track: Ints, time_ns: Ints) -> Ints:
    """The innermost slice of each track at a time; -1 where there is none."""
    slices = placed.slices
    rows_found = np.full(len(track), -1, np.int64)
    for index in np.unique(track[track >= 0]).tolist():
        own_track = placed.tracks[index]
        if not own_track.num_slices:
            continue
        first = own_track.first_row
        rows = slice(first, first + own_track.num_slices)
        starts = slices.start_ns[rows]
        order = np.argsort(starts, kind="stable")
        asked = np.flatnonzero(track == index)
        place = np.searchsorted(starts[order], time_ns[asked], "right") - 1
        row = np.where(place >= 0, order[np.maximum(place, 0)] + first, -1)
        open_ = row >= 0
        while open_.any():
            ends = slices.start_ns[row[open_]] + slices.duration_ns[row[open_]]
            past = ends < time_ns[asked[open_]]
            moved = np.flatnonzero(open_)[past]
            row[moved] = slices.parent[row[moved]]
            open_ = np.zeros(len(row), np.bool_)
            open_[moved] = row[moved] >= 0
        rows_found[asked] = row
    return rows_found
