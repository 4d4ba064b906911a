"""Properties of slices by their texts: each text is looked at once.

Columns of names and categories are rows of `Trace.strings`, of which a trace has far
fewer than slices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Flags, Ints


def texts_in(strings: Sequence[str], rows: Ints) -> Iterator[tuple[int, str]]:
    """Row and text of all that occur in a column of rows, ascending; none is negative."""
    used = np.zeros(len(strings), dtype=bool)
    used[rows] = True
    for row in np.flatnonzero(used).tolist():
        yield row, strings[row]


def looked_up(
    strings: Sequence[str],
    rows: Ints,
    value: Callable[[str], int],
    dtype: npt.DTypeLike = np.uint8,
) -> Ints:
    """(rows,): the value of each row's text."""
    table = np.zeros(len(strings), dtype=dtype)
    for row, text in texts_in(strings, rows):
        table[row] = value(text)
    values: Ints = table[rows]
    return values


def are(strings: Sequence[str], rows: Ints, says: Callable[[str], object]) -> Flags:
    """(rows,): whether something is true of each row's text."""
    flags: Flags = looked_up(strings, rows, lambda text: bool(says(text)), np.bool_)
    return flags
