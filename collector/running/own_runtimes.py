"""Libraries that bring a CUDA runtime of their own, which no virtual GPU can stand in for.

An extension with device code needs CUDA's runtime. Most ask the loader for `libcudart`,
which the virtual GPU replaces. Where it was linked statically there is nothing to replace:
it talks to a driver that is not there. Such a library has device code, and does not leave
the runtime's registration undefined.
"""

from __future__ import annotations

import struct
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

_DEVICE_CODE: Final = b".nv_fatbin"
_REGISTERS: Final = b"__cudaRegisterFatBinary"
_ENDINGS: Final = (".so", ".so.")
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_DYNAMIC_SYMBOLS: Final = 11


class OwnRuntimes:
    """Looks at each library before Python loads it; writes down what it finds at once.

    The next thing that happens may be the end of the process.
    """

    def __init__(self, names_file: Path) -> None:
        """`names_file`: the file to append names to, one a line."""
        self._found = names_file
        self._seen: set[str] = set()

    def install(self) -> None:
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "import":
            path = arguments[1]
        elif event == "ctypes.dlopen":
            path = arguments[0]
        else:
            return
        if isinstance(path, str) and path not in self._seen:
            self._seen.add(path)
            if any(ending in path for ending in _ENDINGS) and has_own_runtime(path):
                with self._found.open("a", encoding="utf-8") as file:
                    file.write(f"{path}\n")


def has_own_runtime(path: str) -> bool:
    """Whether a shared library has device code and a runtime linked into it."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123  # any name the loader takes
            return _has_own_runtime(file)
    except (OSError, struct.error, IndexError):
        return False  # the loader will say what is wrong with it


def _has_own_runtime(file: Any) -> bool:
    head = file.read(_HEADER.size)
    if head[:5] != b"\x7fELF\x02":
        return False
    *_, sections_at, _flags, _size, _, _, each, number, names_at = _HEADER.unpack(head)
    file.seek(sections_at)
    table = file.read(each * number)
    sections = [_SECTION.unpack_from(table, place * each) for place in range(number)]

    def content(section: tuple[int, ...]) -> bytes:
        file.seek(section[4])
        read: bytes = file.read(section[5])
        return read

    names = content(sections[names_at])
    if not any(_text(names, section[0]) == _DEVICE_CODE for section in sections):
        return False
    for section in sections:
        if section[1] == _DYNAMIC_SYMBOLS:
            symbols, texts = content(section), content(sections[section[6]])
            for name_offset, _, _, defined_in, _, _ in _SYMBOL.iter_unpack(symbols):
                if not defined_in and _text(texts, name_offset) == _REGISTERS:
                    return False
    return True


def _text(texts: bytes, start: int) -> bytes:
    return texts[start : texts.index(b"\0", start)]
