"""Lines where the host reads values of the device that are not real.

Nothing computes on a virtual device, so what comes back is zeros unless it was uploaded
before. A program that decides by it (`.item()`, `nonzero`, a mask as an index, routing)
decides otherwise than on a real one. The virtual device tells of each such read, whoever
asks: torch, an extension, compiled code.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.running.plan import Place
from memboard.collector.running.value_uses import is_only_shown

if TYPE_CHECKING:
    from types import FrameType

_BACKWARD: Final = "a thread of torch, as of a backward"
_HOOK: Final = "memboard_vgpu_on_read"
_MAX_PLACES: Final = 500
_MAX_KEPT: Final = 50
_TEXT_OF_TENSORS: Final = f"{os.sep}_tensor_str.py"
_OURS: Final = f"{Path(__file__).parents[1]}{os.sep}"


class Places:
    """Of this process, from `install` on."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, int, str, str, bool], Place] = {}
        self._num_beyond = 0
        self._kept: Any = None

    def install(self) -> None:
        """Have the virtual device tell; without one that can, nothing is known."""
        hook = getattr(ctypes.CDLL(None), _HOOK, None)
        if hook is None:
            return
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)
        self._kept = kind(self._read)  # as long as it may be called
        hook.argtypes = [kind]
        hook.restype = None
        hook(self._kept)

    def found(self) -> tuple[list[Place], int]:
        """Those that decide before others, and of them those that read most often.

        Also how many more there were.
        """
        places = sorted(
            self._places.values(), key=lambda place: (place.is_only_shown, -place.count)
        )
        del places[_MAX_KEPT:]
        return places, len(self._places) - len(places) + self._num_beyond

    def _read(self, _address: int | None, _bytes: int) -> None:
        """Called while torch waits for the copy, on its thread."""
        frame = sys._getframe().f_back  # noqa: SLF001
        place = place_of(frame)
        if place is None:
            place = Place(file="", line=0, function=_BACKWARD)
        elif frame is not None:
            place.is_only_shown = _shows_it(frame)
        key = (place.file, place.line, place.function, place.by, place.is_only_shown)
        if key not in self._places and len(self._places) >= _MAX_PLACES:
            self._num_beyond += 1
        else:
            self._places.setdefault(key, place).count += 1


def place_of(frame: FrameType | None) -> Place | None:
    """The innermost line of the program itself, and which function of others it called.

    None where no line of the program is on the stack, as on threads of torch.
    """
    by = ""
    while frame is not None:
        code = frame.f_code
        if not is_library(code.co_filename):
            return Place(
                file=code.co_filename,
                line=frame.f_lineno,
                function=code.co_name,
                by=by,
            )
        is_ours = code.co_filename.startswith(_OURS)
        if not is_ours and not code.co_name.startswith(("_", "<", "wrap", "inner")):
            by = code.co_name
        frame = frame.f_back
    return None


def _shows_it(frame: FrameType) -> bool:
    """Whether the line of the program that reads only prints or logs the value."""
    innermost: FrameType | None = frame
    while innermost is not None and is_library(innermost.f_code.co_filename):
        code = innermost.f_code
        if code.co_filename.endswith(_TEXT_OF_TENSORS) or code.co_name == "__format__":
            return True
        if not code.co_filename.startswith(_OURS):
            return False  # torch itself needs it
        innermost = innermost.f_back
    return innermost is not None and _is_only_shown(innermost.f_code, innermost.f_lasti)


_is_only_shown: Final = lru_cache(maxsize=1000)(is_only_shown)


def is_library(file: str) -> bool:
    """Whether code of this file is torch's, ours or made by either: not the program's."""
    return file.startswith(("<", _OURS, _torch_folder()))


@lru_cache(maxsize=1)
def _torch_folder() -> str:
    """It has been imported by then."""
    return f"{Path(sys.modules['torch'].__file__ or '').parent}{os.sep}"
