"""The modules of one model as a tree in columns, whatever the file claimed.

Rows keep the file's order if parents come before their children in it; else they are
sorted by depth. A parent that is out of range, or would close a cycle, or of a module
more than `MAX_DEPTH` levels down, is no parent: the module becomes a root, and
`num_repaired` counts it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import Table, place_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Flags, Floats, Ints

MAX_DEPTH: Final = 64
"""No model is nested deeper; sums over ancestors cost one pass per level."""

_BYTES_PER_MODULE: Final = 200
"""Two texts' objects and seven columns."""


@dataclass(frozen=True, slots=True, eq=False)
class ModuleTree(Table):
    """Equal-length columns, one value per module, parents before children."""

    fqn: tuple[str, ...]
    path: tuple[str, ...]
    type: tuple[str, ...]  # Empty where unknown
    parent: Ints
    """Row of the parent; -1 for a root."""
    is_fsdp: Flags
    param_bytes: Floats
    """Own, not children's; NaN where unknown."""
    buffer_bytes: Floats
    row_of: Ints
    """By the file's index: the row here."""
    num_repaired: int
    """Parents that could not be."""

    @property
    def num_bytes(self) -> int:
        """What it holds, for a cache's accounts."""
        texts = sum(map(len, self.fqn)) + sum(map(len, self.path))
        return _BYTES_PER_MODULE * len(self) + texts


def module_tree(
    fqn: Sequence[str],
    parent: Ints,
    *,
    path: Sequence[str] | None = None,
    type_: Sequence[str] | None = None,
    is_fsdp: Ints | None = None,
    param_bytes: Floats | Ints | None = None,
    buffer_bytes: Floats | Ints | None = None,
) -> ModuleTree:
    """Order the modules of a file; columns must have the length of `fqn`."""
    num = len(fqn)
    parents = np.asarray(parent, np.int64).copy()
    out_of_range = (parents < -1) | (parents >= num) | (parents == np.arange(num))
    parents[out_of_range] = -1
    depth, cut = _depths(parents)
    order = np.arange(num)
    if (parents >= order).any():  # else parents come first already
        order = np.argsort(depth, kind="stable")
    row_of = place_of(order, num)
    rows = parents[order]
    row_order = order.tolist()
    return ModuleTree(
        fqn=tuple([fqn[i] for i in row_order]),
        path=_texts(path, row_order),
        type=_texts(type_, row_order),
        parent=np.where(rows >= 0, row_of[rows], -1),
        is_fsdp=np.zeros(num, bool) if is_fsdp is None else is_fsdp[order] != 0,
        param_bytes=_sizes(param_bytes, order),
        buffer_bytes=_sizes(buffer_bytes, order),
        row_of=row_of,
        num_repaired=int(np.count_nonzero(out_of_range)) + cut,
    )


def tree_of_names(fqns: Sequence[str]) -> ModuleTree:
    """The tree that dotted names alone tell: each below the longest prefix listed."""
    rows = {fqn: row for row, fqn in reversed(list(enumerate(fqns)))}
    parent = np.full(len(fqns), -1, np.int64)
    for row, fqn in enumerate(fqns):
        above = fqn
        for _ in range(MAX_DEPTH):
            above, dot, _ = above.rpartition(".")
            if not dot:
                break
            if above in rows:
                parent[row] = rows[above]
                break
    return module_tree(fqns, parent)


def num_equal(tree: ModuleTree) -> Ints:
    """Of each module the number of its children, where they are equal layers.

    Those are numbered and of one known type; 0 for all other modules.
    """
    types: dict[int, set[str]] = {}
    for fqn, type_, above in zip(
        tree.fqn, tree.type, tree.parent.tolist(), strict=True
    ):
        numbered = fqn.rpartition(".")[2].isdecimal()
        types.setdefault(above, set()).add(type_ if numbered else "")
    num_children = np.bincount(tree.parent[tree.parent >= 0], minlength=len(tree))
    equal = [
        len(types.get(row, ())) == 1 and "" not in types[row]
        for row in range(len(tree))
    ]
    return np.where((num_children > 1) & np.array(equal, bool), num_children, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """Equal layers among numbered siblings of several types, as in a hybrid model."""

    parent: int
    members: Ints


def folds_of(tree: ModuleTree, equal: Ints) -> list[Fold]:
    """What one row can stand for below modules whose children are not all `equal`.

    Where numbered children are, on average, two or more of a type.
    """
    numbered: dict[int, dict[str, list[int]]] = {}
    for row, (fqn, type_) in enumerate(zip(tree.fqn, tree.type, strict=True)):
        above = int(tree.parent[row])
        own = fqn.rpartition(".")[2]
        if above >= 0 and type_ and own.isdecimal() and not equal[above]:
            numbered.setdefault(above, {}).setdefault(type_, []).append(row)
    return [
        Fold(above, np.array(rows, np.int64))
        for above, types in numbered.items()
        if sum(map(len, types.values())) >= 2 * len(types)
        for rows in types.values()
        if len(rows) > 1
    ]


MOST_OF_IT: Final = 0.7
"""Of a module's bytes, the share at which those of one child are most of them."""
MOST_BY_LAYERS: Final = 0.5
"""The same of equal layers: no module below them has more than a part of it."""


def lowest_with_most(parent: Ints, live_bytes: Floats, equal: Ints) -> int:
    """The lowest row with most of what the largest root holds.

    `live_bytes`: of each with those below it. Equal layers, the children of a row or
    what it stands for, are as one.
    """
    roots = np.flatnonzero(parent < 0)
    row = int(roots[np.argmax(live_bytes[roots])])
    while not equal[row]:
        below = np.flatnonzero(parent == row)
        if not len(below):
            break
        child = int(below[np.argmax(live_bytes[below])])
        if (
            live_bytes[child]
            <= (MOST_BY_LAYERS if equal[child] else MOST_OF_IT) * live_bytes[row]
        ):
            break
        row = child
    return row


def _depths(parents: Ints) -> tuple[Ints, int]:
    """Depth of each module; cuts what does not end within `MAX_DEPTH`, in place."""
    depth = np.zeros(len(parents), np.int64)
    above = parents.copy()
    for _ in range(MAX_DEPTH):
        inside = above >= 0
        if not inside.any():
            return depth, 0
        depth += inside
        above = np.where(inside, parents[above], -1)
    endless = above >= 0
    if not endless.any():
        return depth, 0
    # Modules in or below a cycle (or too deep) stand alone, all others as they were.
    parents[endless] = -1
    depth, _ = _depths(parents)
    return depth, int(np.count_nonzero(endless))


def _texts(texts: Sequence[str] | None, order: list[int]) -> tuple[str, ...]:
    if texts is None:
        return ("",) * len(order)
    return tuple([texts[i] for i in order])


def _sizes(sizes: Floats | Ints | None, order: Ints) -> Floats:
    if sizes is None:
        return np.full(len(order), np.nan)
    values = np.asarray(sizes)[order].astype(np.float64)
    # Files write "not recorded" as the lowest integer; no size is negative.
    values[~(values >= 0)] = np.nan
    return values
