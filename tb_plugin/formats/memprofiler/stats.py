"""Memory statistics by snap, their names, and why a file of them is not read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from memboard.tb_plugin.analysis.series.functions import HOOK_PREFIX
from memboard.tb_plugin.formats.memprofiler.names import parse_snap_key
from memboard.tb_plugin.worker.errors import ImportFailedError

if TYPE_CHECKING:
    from memboard.tb_plugin.formats.memprofiler.names import SnapKey


class UnreadableError(ImportFailedError):
    """A file, or the rest of it, that cannot be read. Others are not affected."""


_PROCESS: Final = {"rss": "rss_bytes", "vms": "vms_bytes"}
_PROCESS_BACK: Final = {ours: theirs for theirs, ours in _PROCESS.items()}


def our_name(statistic: str) -> str:
    """The stat that MemProfiler calls `statistic`."""
    if statistic in _PROCESS:
        return _PROCESS[statistic]
    # torch's: `allocated_bytes.all.current`, `num_ooms`, `max_split_size`.
    if (
        "." in statistic
        or statistic.startswith("num_")
        or statistic == "max_split_size"
    ):
        return statistic
    return HOOK_PREFIX + statistic


def their_name(statistic: str) -> str:
    """What MemProfiler calls our `statistic`."""
    return _PROCESS_BACK.get(statistic, statistic.removeprefix(HOOK_PREFIX))


MAX_STATS_BYTES: Final = 32 << 20
"""A larger file of statistics is not one: a snap takes about 5 KB."""
MAX_SNAPS: Final = 100_000
MAX_VALUES: Final = 2_000
"""Of one snap. torch has about 130 statistics."""
_MAX_INT: Final = 1 << 62
_MAX_TEXT: Final = 120
_MAX_LEFT_OUT: Final = 5
"""Named one by one; the rest is counted."""


@dataclass(slots=True)
class LeftOut:
    """What of a file could not be used; the rest can."""

    texts: list[str] = field(default_factory=list)
    """The first of it, and why."""
    num: int = 0

    def add(self, reason: str) -> None:
        self.num += 1
        if len(self.texts) < _MAX_LEFT_OUT:
            self.texts.append(reason)

    @property
    def first(self) -> str:
        """The first, in brackets behind a space; empty where there is nothing."""
        return f" ({self.texts[0]})" if self.texts else ""

    def error(self) -> UnreadableError:
        """All of it, as it is told."""
        more = self.num - len(self.texts)
        texts = [*self.texts, *([f"{more:,} more"] if more else [])]
        return UnreadableError(
            f"Not all of the file was used: {'; '.join(texts)}.",
            "",
            "Only numbers of memory are read; nothing else in the file is missing.",
        )


@dataclass(slots=True)
class Stats:
    """What one file says. Values are numbers under the names the file gives them."""

    snaps: dict[SnapKey, dict[str, float]] = field(default_factory=dict)
    left_out: LeftOut = field(default_factory=LeftOut)
    error: UnreadableError | None = None
    """Why the rest of the file was not read; what came before it was."""

    def begin(self, key: object) -> dict[str, float] | None:
        """The values of the snap named `key`, to be filled; None where it is no snap."""
        snap = parse_snap_key(key) if isinstance(key, str) else None
        if snap is None:
            self.left_out.add(
                f"{shown(key)} names no rank.function.iteration.start|end"
            )
            return None
        if len(self.snaps) >= MAX_SNAPS:
            self.left_out.add(f"{shown(key)}: more than {MAX_SNAPS:,} snaps")
            return None
        return self.snaps.setdefault(snap, {})

    def put(
        self, values: dict[str, float], key: object, statistic: object, value: Any
    ) -> None:
        """Keep a number. None is "not recorded"; everything else is left out, named."""
        if value is None:
            return
        if not isinstance(statistic, str) or len(statistic) > _MAX_TEXT:
            self.left_out.add(
                f"{shown(key)}: {shown(statistic)} is not the name of a statistic"
            )
        elif type(value) not in (int, float):
            self.left_out.add(
                f"{shown(key)}: {shown(statistic)} is no number: {shown(value)}"
            )
        elif not math.isfinite(value) or abs(value) > _MAX_INT:
            self.left_out.add(f"{shown(key)}: {shown(statistic)} is out of range")
        elif len(values) >= MAX_VALUES:
            self.left_out.add(f"{shown(key)}: more than {MAX_VALUES:,} statistics")
        else:
            values[statistic] = value


@dataclass(frozen=True, slots=True)
class RefusedObject:
    """What stands for an object that the file wants made: its name, never itself."""

    name: str


def shown(value: object) -> str:
    """A bounded, printable text for a message."""
    if isinstance(value, RefusedObject):
        return f"an object of {shown(value.name)}"
    if isinstance(value, str):
        text = value[:_MAX_TEXT]
        return text if text.isprintable() else ascii(text)
    if value is None or isinstance(value, (bool, float)):
        return str(value)
    return f"a {type(value).__name__}"
