"""Rows of a long table that are sent: those that hold a text, the first in an order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    Ints: TypeAlias = npt.NDArray[Any]


def rows_sent(
    num: int,
    columns: Mapping[str, Ints],
    sort: str | None,
    default: str,
    top: int,
    holds: Callable[[int], bool] | None = None,
    texts: Mapping[str, Callable[[int], str]] | None = None,
) -> tuple[Ints, int]:
    """Rows in an order, and how many there are in all.

    `sort`: a name of `columns` or of `texts`, the largest first; with `-` before it the
    smallest first, texts from A. Any other name means `default`. What is not known (NaN)
    comes last either way. `holds`: whether a row holds the text searched for.
    """
    rows = np.arange(num)
    if holds is not None:
        rows = np.array([row for row in range(num) if holds(row)], dtype=np.int64)
    word = sort or default
    name, ascending = word.removeprefix("-"), word.startswith("-")
    text = (texts or {}).get(name)
    if text is not None:
        words = {row: text(row).casefold() for row in rows.tolist()}
        ordered = sorted(words, key=words.__getitem__, reverse=not ascending)
        return np.array(ordered[:top], dtype=np.int64), len(rows)
    if name not in columns:
        name, ascending = default, False
    values = np.asarray(columns[name], dtype=np.float64)[rows]
    # The order of NaN is last in numpy, whichever the sign.
    order = rows[np.argsort(values if ascending else -values, kind="stable")]
    return order[:top], len(rows)
