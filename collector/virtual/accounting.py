"""Accounting of virtual GPUs, read from outside: who uses what, which calls were made."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memboard.collector.virtual.answers import outputs_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# As accounting.c has them.
_DEVICES = 64
_PROCESSES = 256
_HEADER = struct.Struct("<8sIIQ64x")
_PROCESS = struct.Struct(f"<iiQ{_DEVICES}Q{_DEVICES}Q")
_CALL = struct.Struct("<88sQ")
_MAGIC, _VERSION = b"VGPUACCT", 2


@dataclass(frozen=True)
class Process:
    """One process: bytes in use and their peak, by device, context included.

    `living` is whether it had not ended when somebody last counted.
    """

    pid: int
    living: bool
    used: dict[int, int]
    peak: dict[int, int]


@dataclass(frozen=True)
class Calls:
    """How often one function of NVIDIA's libraries was called that is not written in C.

    `known` are those that are meant to do nothing, or whose answer is written down.
    """

    library: str
    name: str
    count: int
    known: bool


@dataclass(frozen=True)
class Accounting:
    """A file of accounting as it was when it was read."""

    devices: int
    memory_bytes: int
    processes: list[Process]
    calls: list[Calls]


def read_accounting(path: Path) -> Accounting | None:
    """What the file holds; None where no process has opened it yet.

    Raises:
        OSError: it cannot be read.
        ValueError: it holds no accounting, or another version's.
    """
    content = path.read_bytes() if path.exists() else b""
    if len(content) < _HEADER.size or not any(content[: _HEADER.size]):
        return None
    magic, version, devices, memory = _HEADER.unpack_from(content)
    if magic != _MAGIC or version != _VERSION:
        raise ValueError(f"{path} holds no accounting of virtual GPUs of this version")
    calls = _HEADER.size + _PROCESSES * _PROCESS.size
    return Accounting(
        devices=devices,
        memory_bytes=memory,
        processes=list(_processes(content[_HEADER.size : calls])),
        calls=sorted(
            _calls(content[calls:]), key=lambda call: (-call.count, call.name)
        ),
    )


def _processes(content: bytes) -> Iterator[Process]:
    for pid, living, _, *figures in _PROCESS.iter_unpack(content):
        if pid:
            used, peak = figures[:_DEVICES], figures[_DEVICES:]
            yield Process(
                pid,
                bool(living),
                {device: size for device, size in enumerate(used) if size},
                {device: size for device, size in enumerate(peak) if size},
            )


def _calls(content: bytes) -> Iterator[Calls]:
    for name, count in _CALL.iter_unpack(content):
        library, _, function = name.partition(b"\0")[0].decode().partition(" ")
        if function:
            yield Calls(library, function, count, outputs_of(function) is not None)
