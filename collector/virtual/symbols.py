"""Reads what torch's libraries link of NVIDIA's: sonames, symbols and their versions."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_SYSTEM = ("libc.", "libm.", "libdl.", "librt.", "libpthread.", "libgcc_s.", "libstdc++.", "ld-linux", "libgomp", "libutil.")  # fmt: skip

_PREFIXES = {
    "libcudart": ("cuda", "__cuda"),
    "libcublasLt": ("cublasLt",),
    "libcublas": ("cublas",),
    "libcudnn": ("cudnn",),
    "libcufft": ("cufft",),
    "libcurand": ("curand",),
    "libcusparseLt": ("cusparseLt",),
    "libcusparse": ("cusparse",),
    "libcusolver": ("cusolver",),
    "libnccl": ("nccl", "pnccl"),
    "libcufile": ("cuFile",),
    "libcupti": ("cupti",),
    "libnvrtc": ("nvrtc",),
    "libnvshmem_host": ("nvshmem",),
    "libnvidia-ml": ("nvml",),
    "libcuda": ("cu",),
}
"""Whose a symbol is by its name: the longest prefix decides."""

_VERSIONED = ("libcudart", "libcublas", "libcudnn", "libcufft", "libcurand", "libcusparse", "libcusolver", "libnvrtc", "libcupti")  # fmt: skip
"""Libraries whose symbols carry their soname as version."""


@dataclass
class StubSymbols:
    """One library's stub: its soname and, by symbol, its version ("" for none)."""

    soname: str
    symbols: dict[str, str] = field(default_factory=dict)

    @property
    def family(self) -> str:
        """The soname without its ending: `libcudart`."""
        return self.soname.partition(".so")[0]

    def add(self, symbols: Iterable[str]) -> None:
        """Functions that torch does not want but others may."""
        version = self.soname if self.family in _VERSIONED else ""
        for symbol in symbols:
            self.symbols.setdefault(symbol, version)


def is_nvidia(soname: str) -> bool:
    """Whether a library of this soname is one of NVIDIA's that have stubs."""
    return soname.partition(".so")[0] in _PREFIXES


def family_of(symbol: str) -> str | None:
    """The library that a symbol's name belongs to: `libcublas` for `cublasSgemm_v2`."""
    best = max(
        (
            (len(prefix), family)
            for family, prefixes in _PREFIXES.items()
            for prefix in prefixes
            if symbol.startswith(prefix) and not symbol[len(prefix) :][:1].islower()
        ),
        default=None,
    )
    return best[1] if best else None


def wanted(libraries: Iterable[Path], written: Iterable[str]) -> dict[str, StubSymbols]:
    """The stubs that these libraries need, by soname.

    `written` are the functions written by hand: a stub has all of its family.
    """
    needed: set[str] = set()
    undefined: dict[str, set[tuple[str, str]]] = {}
    for path in libraries:
        for soname in _read(path, undefined):
            needed.add(soname)
    stubs = {
        soname: StubSymbols(soname) for soname in sorted(needed) if is_nvidia(soname)
    }
    for soname in ("libcuda.so.1", "libnvidia-ml.so.1"):  # are loaded by name
        stubs.setdefault(soname, StubSymbols(soname))
    by_family = {stub.family: stub for stub in stubs.values()}
    for symbol, versions in undefined.items():
        for soname, version in versions:
            stub = stubs.get(soname) or by_family.get(family_of(symbol) or "")
            if stub is not None:
                stub.symbols[symbol] = version
    for symbol in written:
        stub = by_family.get(family_of(symbol) or "")
        if stub is not None:
            stub.add([symbol])
    return stubs


def exported(library: Path, prefix: str) -> list[str]:
    """The functions that a library exports under `prefix`, without it."""
    from elftools.elf.elffile import ELFFile

    with library.open("rb") as file:
        elf: Any = ELFFile(file)
        names = [
            symbol.name
            for symbol in elf.get_section_by_name(".dynsym").iter_symbols()
            if symbol["st_shndx"] != "SHN_UNDEF"
        ]
    return sorted(
        symbol[len(prefix) :] for symbol in names if symbol.startswith(prefix)
    )


def _read(path: Path, undefined: dict[str, set[tuple[str, str]]]) -> list[str]:
    """The sonames a library needs; what it leaves undefined goes to `undefined`."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        try:
            elf: Any = ELFFile(file)
        except ELFError:
            return []  # a linker script or a file cut short
        dynamic = elf.get_section_by_name(".dynamic")
        table = elf.get_section_by_name(".dynsym")
        if dynamic is None or table is None:
            return []
        needed = [
            tag.needed
            for tag in dynamic.iter_tags("DT_NEEDED")
            if not tag.needed.startswith(_SYSTEM)
        ]
        if any(map(is_nvidia, needed)):
            for name, soname, version in _undefined(elf, table):
                if is_nvidia(soname) or (not soname and family_of(name)):
                    undefined.setdefault(name, set()).add((soname, version))
    return needed


def _undefined(elf: Any, table: Any) -> Iterator[tuple[str, str, str]]:
    """Name, soname and version of each; libraries have 100,000 symbols, so by hand."""
    names = elf.get_section(table["sh_link"]).data()
    section = elf.get_section_by_name(".gnu.version")
    versions = section.data() if section else b""
    meant = _version_names(elf)
    # st_name, st_info, st_other, st_shndx, st_value, st_size
    for number, symbol in enumerate(struct.iter_unpack("<IBBHQQ", table.data())):
        if symbol[3] == 0 and symbol[0]:
            name = names[symbol[0] : names.index(b"\0", symbol[0])].decode()
            index = versions[2 * number : 2 * number + 2]
            yield name, *meant.get(int.from_bytes(index, "little") & 0x7FFF, ("", ""))


def _version_names(elf: Any) -> dict[int, tuple[str, str]]:
    section = elf.get_section_by_name(".gnu.version_r")
    if section is None:
        return {}
    return {
        auxiliary["vna_other"]: (version.name, auxiliary.name)
        for version, auxiliaries in section.iter_versions()
        for auxiliary in auxiliaries
    }
