"""Times as whole nanoseconds, from microseconds as floats or as digits."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Ints: TypeAlias = npt.NDArray[np.int64]
    Floats: TypeAlias = npt.NDArray[np.float64]

NO_TIME: Final = -(2**63)
"""Where an event says none, or one that cannot be."""
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
    found = whole.astype(np.int64) * 1000
    found += np.rint((times - whole) * 1000).astype(np.int64)
    return found if usual else np.where(valid, found, NO_TIME)


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
    found = _alike(texts, longest) if len(lengths) == 1 else None
    if found is not None:
        return found
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
