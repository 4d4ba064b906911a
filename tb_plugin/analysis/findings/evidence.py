"""Numbers that findings rest on, by their unit, and places that show a rank."""

from __future__ import annotations

from typing import Final

from memboard.tb_plugin.api.findings import Evidence, PageName, Place

STEPS: Final = "the profiled steps"


def percent(
    key: str,
    label: str,
    share: float,
    scope: str = STEPS,
    caveat: str = "",
    *,
    sure: bool = True,
) -> Evidence:
    """A share; `sure`: the finding was made by it."""
    return Evidence(key, label, 100 * float(share), "percent", scope, caveat, sure)


def seconds(
    key: str, label: str, value: float, scope: str, *, sure: bool = False
) -> Evidence:
    return Evidence(key, label, float(value), "seconds", scope, decisive=sure)


def num_bytes(
    key: str, label: str, value: float, scope: str, *, sure: bool = True
) -> Evidence:
    return Evidence(key, label, float(value), "bytes", scope, decisive=sure)


def count(
    key: str, label: str, value: int, scope: str = "the trace", *, sure: bool = True
) -> Evidence:
    """How many there are; `sure`: the finding was made by it."""
    return Evidence(key, label, float(value), "count", scope, decisive=sure)


def of_rank(page: PageName, rank: int) -> Place:
    """Where a rank is shown."""
    return Place(page, f"Show rank {rank}", rank=rank)
