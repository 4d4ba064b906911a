"""Means over time of a counter that holds each value until the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints: TypeAlias = npt.NDArray[Any]
    Floats: TypeAlias = npt.NDArray[np.float64]


def step_means(time_ns: Ints, value: Floats, edges_ns: Ints) -> Floats:
    """The mean of each piece of time, by what of it lies behind the first point.

    Args:
        time_ns: (points,) ascending.
        value: (points,) from its time to the next; the last one holds on.
        edges_ns: (pieces + 1,) ascending.

    Returns:
        (pieces,); NaN where a piece ends before the first point.
    """
    if not len(time_ns):
        return np.full(max(len(edges_ns) - 1, 0), np.nan)
    known = np.maximum(edges_ns, time_ns[0])
    held = np.concatenate(([0.0], np.cumsum(value[:-1] * np.diff(time_ns))))
    at = np.searchsorted(time_ns, known, "right") - 1
    total = held[at] + value[at] * (known - time_ns[at])
    length = np.diff(known)
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Floats = np.where(length > 0, np.diff(total) / length, np.nan)
    return means
