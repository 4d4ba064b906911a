"""Makes plain what training gives: text, numbers, and mappings of them.

Nothing here raises, whatever an object's own methods do, and no value of an array is
read: a tensor's would have to be waited for on its device. Of what is large, or has no
end, a beginning is read: the training thread waits.
"""

from __future__ import annotations

import math
import numbers
import weakref
from array import array
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType

MAX_TEXT: Final = 1000
"""Of a name or a label."""

MAX_ARGS: Final = 32
MAX_KEY: Final = 100
_MAX_VALUE: Final = 500
_MAX_DEPTH: Final = 2

NUMBERS: Final = frozenset({int, float, bool})

PROGRAM_ENDS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""These pass every guard: a program ends by them. All else that is raised does not, also
where it is no `Exception`: a panic in a Rust extension, say."""


class _Forgiving:
    __slots__ = ()

    def __enter__(self) -> None:
        return

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        return kind is not None and not issubclass(kind, PROGRAM_ENDS)


forgiving: Final = _Forgiving()
"""Around what another's object does when it is read: whatever it raises ends the block."""

_CONTAINERS: Final = frozenset({list, tuple, dict, set, frozenset})

_SIZED: Final[tuple[Any, ...]] = (
    *_CONTAINERS,
    bytes,
    bytearray,
    memoryview,
    deque,
    array,
)
"""Classes whose text is as long as they are, and that of what is derived from them."""

_MAX_BITS: Final = 4096
"""Of a whole number's text: it takes the square of its length."""

_MAX_DIMENSIONS: Final = 64

_LARGEST: Final = 2**62


def text_of(value: Any, limit: int = MAX_TEXT) -> str:
    """Text of bounded length: the value's own where it has one, else what it is."""
    if issubclass(type(value), str):
        return str.__getitem__(value, slice(limit))
    text = own_text(value)
    return (described(value) if text is None else text)[:limit]


def own_text(value: Any) -> str | None:
    """What `str` makes of a value; None where that fails, is long or would read an array."""
    kind = type(value)
    with forgiving:  # whatever a method of the user's raises
        if kind in _CONTAINERS:
            return str(_plain(value, _MAX_DEPTH))
        if not hasattr(kind, "__dlpack__") and not _is_large(value, kind):
            # A class of the user's own may make anything of text that it inherits.
            text = value if issubclass(kind, str) else str(value)
            return str.__str__(text)
    return None


def _is_large(value: Any, kind: Any) -> bool:
    """Whether it is a collection of many entries, or a number of many digits."""
    if issubclass(kind, int):
        return int.bit_length(value) > _MAX_BITS
    base = next((base for base in _SIZED if issubclass(kind, base)), None)
    return base is not None and base.__len__(value) > MAX_ARGS


def described(value: Any) -> str:
    """What a value is, without reading it: `<Tensor on cuda:0, shape (2, 3)>`."""
    kind, name = type(value), "object"
    with forgiving:  # whatever a class of the user's raises
        name = str(kind.__qualname__)
        if hasattr(kind, "__dlpack__"):
            device = getattr(value, "device", None)  # numpy's have none before 2.0
            name += "" if device is None else f" on {device}"
            name += f", shape {tuple(islice(value.shape, _MAX_DIMENSIONS))}"
    return f"<{name}>"[:MAX_KEY]


def whole_number(value: Any) -> int | None:
    """`value` as an int where it is one in any guise that needs no waiting, else None."""
    if type(value) is int:  # the usual case, and it is asked at every step
        return value if -_LARGEST < value < _LARGEST else None
    with forgiving:  # NaN, infinity, a number of the user's own making
        if isinstance(value, numbers.Real):  # as numpy's numbers are
            number: Any = math.floor(value)
            is_whole = type(number) is int and number == value
            if is_whole and -_LARGEST < number < _LARGEST:
                return int(number)
    return None


def number_of(value: Any) -> float | None:
    """`value` as a float where it is a number that needs no waiting, else None."""
    if type(value) is float:
        return value
    with forgiving:  # beyond all floats, or of the user's own making
        return float(value) if isinstance(value, numbers.Real) else None
    return None


def plain_args(args: dict[str, Any]) -> dict[str, Any] | None:
    """Bounded plain data: of what is no number or text only what it is.

    Nothing is read from a device, and no tensor is kept alive. May raise where `args` is
    no mapping.
    """
    if not args:
        return None
    plain_by_name: dict[str, Any] = {}
    for key, value in islice(args.items(), MAX_ARGS):
        is_number = type(value) in NUMBERS  # mostly, and then no call is needed
        is_short = type(key) is str and len(key) <= MAX_KEY
        name = key if is_short else text_of(key, MAX_KEY)
        plain_by_name[name] = value if is_number else _plain(value, _MAX_DEPTH)
    return plain_by_name


def _plain(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind in NUMBERS or value is None:
        return value
    if issubclass(kind, str):
        return str.__str__(value)[:_MAX_VALUE]
    if depth and kind is dict:
        some = _some(value.items())
        return {text_of(key, MAX_KEY): _plain(item, depth - 1) for key, item in some}
    if depth and kind in _CONTAINERS:
        return [_plain(entry, depth - 1) for entry in _some(value)]
    return described(value)


def _some(values: Iterable[Any]) -> Sequence[Any]:
    return tuple(islice(values, MAX_ARGS))


def weakly(value: Any) -> Callable[[], Any]:
    """A function that returns it, or None where it is gone."""
    try:
        return weakref.ref(value)
    except TypeError:  # its class has slots and allows none
        return lambda: value
