"""Two trees of calls as one: which row of the one is which row of the other.

Below rows that are the same, rows of equal names are the same. Modules and kernels are
numbered as they are made (`Linear_3`), so a layer more changes the names of all later ones:
of names that differ in such a number alone, and are equally many, the first is the first.
Where they are not equally many, equal names go before.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memboard.tb_plugin.analysis.arrays import Ints

_NUMBER: Final = re.compile(r"[_#]\d+$|0x[0-9a-f]{6,}|\b[0-9a-z]{32,}\b")
"""Numbers of instances, addresses and hashes: another run has others."""


class NamedTree(NamedTuple):
    """Rows of a tree; parents come before what is below them."""

    names: Sequence[str]
    """Different ones below one row, else the first counts for all of the name."""
    parents: Sequence[int]
    order: Sequence[int]
    """By row; ranks those below one row, as the time at which they began."""


class MatchedTrees(NamedTuple):
    """Rows of both trees; parents come before what is below them."""

    names: list[str]
    parents: Ints
    a: Ints
    """Row of the first tree; NOTHING: only the other one has it. Likewise the next."""
    b: Ints


def matched_trees(a: NamedTree, b: NamedTree) -> MatchedTrees:
    """Match from the roots down; below rows of one tree alone nothing is matched."""
    below_a, below_b = _below(a), _below(b)
    names: list[str] = []
    rows: list[tuple[int, int, int]] = []
    waiting = [(NOTHING, NOTHING, NOTHING)]
    for parent, of_a, of_b in waiting:
        is_root = parent == NOTHING
        own_a = below_a[of_a] if is_root or of_a != NOTHING else []
        own_b = below_b[of_b] if is_root or of_b != NOTHING else []
        for pair in _pairs(own_a, own_b, a.names, b.names):
            waiting.append((len(rows), *pair))
            rows.append((parent, *pair))
            names.append(_name(pair, a.names, b.names))
    parents, rows_a, rows_b = np.array(rows, np.int64).reshape(-1, 3).T
    return MatchedTrees(names, parents, rows_a, rows_b)


def _below(tree: NamedTree) -> defaultdict[int, list[int]]:
    rows: defaultdict[int, list[int]] = defaultdict(list)
    for row in sorted(range(len(tree.parents)), key=tree.order.__getitem__):
        rows[tree.parents[row]].append(row)
    return rows


def _pairs(
    rows_a: Sequence[int],
    rows_b: Sequence[int],
    names_a: Sequence[str],
    names_b: Sequence[str],
) -> Iterator[tuple[int, int]]:
    """Of rows below one row, those that are the same, then those of one side alone."""
    alike_a, alike_b = _alike(rows_a, names_a), _alike(rows_b, names_b)
    alone: list[tuple[int, int]] = []
    for name in [*alike_a, *(name for name in alike_b if name not in alike_a)]:
        own_a, own_b = alike_a.get(name, []), alike_b.get(name, [])
        pairs = _same(own_a, own_b, names_a, names_b)
        yield from pairs
        in_a, in_b = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
        alone += [(row, NOTHING) for row in own_a if row not in in_a]
        alone += [(NOTHING, row) for row in own_b if row not in in_b]
    yield from alone


def _same(
    rows_a: list[int],
    rows_b: list[int],
    names_a: Sequence[str],
    names_b: Sequence[str],
) -> list[tuple[int, int]]:
    row_of_name = {names_b[row]: row for row in rows_b}
    named = {names_a[row] for row in rows_a}
    if len(rows_a) == len(rows_b) and named != row_of_name.keys():
        return list(zip(rows_a, rows_b, strict=True))
    pairs = [
        (row, row_of_name.pop(names_a[row]))
        for row in rows_a
        if names_a[row] in row_of_name
    ]
    in_a, in_b = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
    rest_a = (row for row in rows_a if row not in in_a)
    rest_b = (row for row in rows_b if row not in in_b)
    return [*pairs, *zip(rest_a, rest_b, strict=False)]


def _alike(rows: Sequence[int], names: Sequence[str]) -> dict[str, list[int]]:
    """Rows by their names without numbers."""
    alike: defaultdict[str, list[int]] = defaultdict(list)
    for row in rows:
        alike[_NUMBER.sub("", names[row])].append(row)
    return alike


def _name(pair: tuple[int, int], names_a: Sequence[str], names_b: Sequence[str]) -> str:
    of_a, of_b = (
        "" if row == NOTHING else names[row]
        for row, names in zip(pair, (names_a, names_b), strict=True)
    )
    if not of_a or not of_b or of_a == of_b:
        return of_a or of_b
    return f"{of_a} \N{RIGHTWARDS ARROW} {of_b}"
