"""How often an address had been used before: what tells its allocations apart by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.allocator.lifetimes import Lifetimes

    Ints: TypeAlias = npt.NDArray[Any]


def versions(lives: Lifetimes, rows: Ints) -> Ints:
    """By row: the number of earlier allocations at its address, as memory_viz counts."""
    if not len(rows):
        return np.empty(0, np.int64)
    addr = lives.addr[: int(rows.max()) + 1]
    wanted = np.unique(addr[rows])
    # Few are asked for: searching among them is faster than sorting all addresses.
    place = np.minimum(np.searchsorted(wanted, addr), len(wanted) - 1)
    same = np.flatnonzero(wanted[place] == addr)
    order = np.argsort(place[same], kind="stable")
    first = np.searchsorted(place[same][order], np.arange(len(wanted)))
    before = np.empty(len(same), np.int64)
    before[order] = np.arange(len(same)) - first[place[same][order]]
    found: Ints = before[np.searchsorted(same, rows)]
    return found
