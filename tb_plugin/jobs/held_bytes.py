"""How much memory an object keeps: its arrays and texts, and all it leads to."""

from __future__ import annotations

import mmap
import sys
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints: TypeAlias = npt.NDArray[Any]


def held_bytes(value: Any) -> int:
    """Bytes of all arrays and texts that an object leads to, each counted once.

    What is mapped from a file does not count.
    """
    return _held_bytes(value, {})


def _held_bytes(value: Any, seen: dict[int, Any]) -> int:
    """`seen` keeps what was counted, so that no id is used twice meanwhile."""
    if isinstance(value, np.ndarray):
        owner = _owner(value)
        if owner is None or id(owner) in seen:
            return 0
        seen[id(owner)] = owner
        return int(owner.nbytes)
    if value is None or isinstance(value, (int, float, bool, str, bytes, type)):
        return 0
    if id(value) in seen:
        return 0
    seen[id(value)] = value
    if isinstance(value, (tuple, list)):
        if value and all(isinstance(item, str) for item in value[:1]):
            return sum(map(sys.getsizeof, value))
        return sum(_held_bytes(item, seen) for item in value)
    if isinstance(value, dict):
        return sum(_held_bytes(item, seen) for item in list(value.values()))
    if is_dataclass(value):
        of_fields = (getattr(value, field.name) for field in fields(value))
        return sum(_held_bytes(item, seen) for item in of_fields)
    if type(value).__module__.startswith("tb_plugin."):
        return _held_bytes(list(getattr(value, "__dict__", {}).values()), seen)
    return 0


def _owner(array: Ints) -> Ints | None:
    """The array whose memory it shows; None where that is a file's."""
    if array.size and not any(array.strides):
        return None  # one number, however often it is seen
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    base = owner.base.obj if isinstance(owner.base, memoryview) else owner.base
    return None if isinstance(base, mmap.mmap) else owner
