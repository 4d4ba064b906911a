"""Memory, processor time and number of a process and all below it.

From `/proc`, so on Linux alone. Memory is the sum of resident sets ("rss"), which counts
pages that forks share once for each, and, where it is asked for, of proportional ones
("pss"), which counts each page once.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_EVERY_S = 0.02


@dataclass
class Taken:
    """At one moment, or the most of each over time."""

    rss_mb: float = 0.0
    pss_mb: float = 0.0
    cpu_s: float = 0.0
    """Of those that live, and of those that ended and were waited for."""
    processes: int = 0


def taken_by(root: int, *, pss: bool = False) -> Taken:
    """By a process and all below it, now."""
    children: dict[int, list[int]] = {}
    found: dict[int, list[str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
                found[int(entry.name)] = fields
    taken, stack = Taken(), [root]
    while stack:
        pid = stack.pop()
        stack += children.get(pid, [])
        fields = found.get(pid, [])
        if fields:
            taken.processes += 1
            taken.rss_mb += int(fields[21]) * _PAGE / 2**20
            taken.cpu_s += sum(map(int, fields[11:15])) / _TICKS
            taken.pss_mb += _pss_mb(pid) if pss else 0.0
    return taken


def _pss_mb(pid: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


class Watch:
    """A thread that keeps the most of each, until it is told to stop."""

    def __init__(self, root: int, *, pss: bool = False) -> None:
        self.most = Taken()
        self._root, self._pss = root, pss
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> Taken:
        """The most of each so far."""
        self._over.set()
        self._thread.join()
        return self.most

    def _look(self) -> None:
        while True:
            now, most = taken_by(self._root, pss=self._pss), self.most
            for name in vars(most):
                setattr(most, name, max(getattr(most, name), getattr(now, name)))
            if self._over.wait(_EVERY_S):
                return
