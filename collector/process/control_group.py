"""The Linux control group that limits this process's memory, version 1 or 2.

A limit may stand on any ancestor of the process's own group, so the tightest one from
there up to the root decides. Used bytes leave out file pages that the kernel drops
before it kills anything: otherwise reading a data set makes every job look full.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

_UNLIMITED: Final = 2**60
"""Version 1 writes a page short of 2**63 for no limit; no machine has an exbibyte."""


class _Files(NamedTuple):
    limit: str
    usage: str
    droppable: str


_VERSION_1: Final = _Files(
    "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
)
_VERSION_2: Final = _Files("memory.max", "memory.current", "inactive_file")


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """The group whose limit binds; its figures are read anew each time."""

    folder: Path
    files: _Files

    def limit_bytes(self) -> int | None:
        """The limit; None where it has been lifted."""
        return _limit(self.folder / self.files.limit)

    def used_bytes(self) -> int | None:
        """What counts towards the limit and cannot be dropped; None where not told."""
        try:
            usage = int((self.folder / self.files.usage).read_text())
            stat = (self.folder / "memory.stat").read_text()
        except (OSError, ValueError):
            return None
        for line in stat.splitlines():
            key, _, value = line.partition(" ")
            if key == self.files.droppable:
                return max(0, usage - int(value))
        return usage


def find_group(root: Path = Path("/")) -> ControlGroup | None:
    """The control group that limits this process, or None.

    `root` stands for the root directory, for tests.
    """
    try:
        groups = (root / "proc/self/cgroup").read_text()
        mounts = (root / "proc/self/mountinfo").read_text()
    except OSError:
        return None
    groups_by_limit: list[tuple[int, ControlGroup]] = []
    for line in groups.splitlines():
        hierarchy, controllers, path = line.split(":", 2)
        version_2 = hierarchy == "0" and not controllers
        if not version_2 and "memory" not in controllers.split(","):
            continue
        files = _VERSION_2 if version_2 else _VERSION_1
        for folder in _ancestors(root, mounts, path, version_2=version_2):
            limit = _limit(folder / files.limit)
            if limit is not None:
                groups_by_limit.append((limit, ControlGroup(folder, files)))
    return (
        min(groups_by_limit, key=lambda pair: pair[0])[1] if groups_by_limit else None
    )


def machine_bytes() -> int | None:
    """Memory of this machine, or what a control group lets this process have of it.

    None where nobody says it. The group is looked for once, its limit is read each time.
    """
    group = _own_group()
    limit = None if group is None else group.limit_bytes()
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows
        return limit
    return whole if limit is None else min(whole, limit)


@cache
def _own_group() -> ControlGroup | None:
    return find_group()


def _ancestors(root: Path, mounts: str, path: str, *, version_2: bool) -> list[Path]:
    """The group's folder and those above it, up to where the hierarchy is mounted."""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.partition(" ")
        if version_2:
            matches = kind == "cgroup2"
        else:
            matches = kind == "cgroup" and "memory" in options.split(" ")[-1].split(",")
        if not matches:
            continue
        mounted, mount_point = before.split(" ")[3:5]
        top = root / mount_point.lstrip("/")
        # A container sees its own group mounted, yet may be told the host's path.
        inside = path.removeprefix(mounted) if mounted != "/" else path
        folder = top / inside.strip("/")
        if not folder.is_dir() or not folder.is_relative_to(top):
            folder = top
        return [folder, *(f for f in folder.parents if f.is_relative_to(top))]
    return []


def _limit(file: Path) -> int | None:
    try:
        limit = int(file.read_text())
    except (OSError, ValueError):  # no such file, or the word max
        return None
    return limit if limit < _UNLIMITED else None
