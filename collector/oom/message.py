"""Out-of-memory errors by their type and text; see `memboard.collector.format.sizes` too.

A message is a text of anybody's: nothing here fails or takes long.
"""

from __future__ import annotations

import re
from typing import Final

from memboard.collector.core.plain import own_text
from memboard.collector.format.sizes import MAX_TEXT, UNITS

_KIND: Final = re.compile(r"(CUDA|HIP|XPU|MPS|NPU)\b")
_TYPES: Final = {"HIP": "cuda"}
_IS_IT: Final = re.compile(
    r"out of memory|can't allocate memory|not enough memory: you tried", re.IGNORECASE
)
_NAMES: Final = frozenset({"OutOfMemoryError", "MemoryError"})


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether it is an out-of-memory error: torch's, Python's, or one that only says so."""
    if _NAMES.intersection(cls.__name__ for cls in type(error).__mro__):
        return True
    return isinstance(error, RuntimeError) and bool(_IS_IT.search(text_of(error)))


def text_of(error: BaseException) -> str:
    """The text of an exception, which may fail to have one."""
    return (own_text(error) or "")[:MAX_TEXT]


def is_of_device(error: BaseException, text: str) -> bool:
    """Whether an out-of-memory error is about a device, and not the host's memory."""
    names = {cls.__name__ for cls in type(error).__mro__}
    if "OutOfMemoryError" in names or "AcceleratorError" in names:
        return True
    return "MemoryError" not in names and "out of memory" in text.lower()


def device_type_in(text: str) -> str | None:
    """The type of device that a message is about; None: it does not say."""
    match = _KIND.match(text)
    return None if match is None else _TYPES.get(match[1], match[1].lower())


def in_words(num_bytes: int | None) -> str:
    """A size as torch's own messages spell it."""
    if num_bytes is None:
        return "an unknown size"
    for unit in ("GiB", "MiB", "KiB"):
        if num_bytes >= UNITS[unit]:
            return f"{num_bytes / UNITS[unit]:.2f} {unit}"
    return f"{num_bytes} bytes"
