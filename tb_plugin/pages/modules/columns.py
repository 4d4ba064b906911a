"""Arrays of module memory to the columns of responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from collector.format.memory import CATEGORIES, FOLDS_INTO
from tb_plugin.api.modules import ModuleSeries
from tb_plugin.api.modules import ModuleTree as ApiModuleTree
from tb_plugin.contract.wire import f64, i32, u8

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tb_plugin.analysis.modules.tree import Floats, ModuleTree
    from tb_plugin.api.modules import CategoryGroup

_ORDER: Final = {name: index for index, name in enumerate(CATEGORIES)}


def tree_columns(tree: ModuleTree) -> ApiModuleTree:
    """The tree as the page gets it: names of modules rather than whole paths."""
    names: dict[str, int] = {}
    name, parents = [], tree.parent.tolist()
    fqns = tree.fqn
    for row, fqn in enumerate(fqns):
        above = parents[row]
        own = fqn
        if above >= 0:
            length = len(fqns[above]) + 1
            if fqn.startswith(fqns[above] + "."):
                own = fqn[length:]
            else:  # named otherwise than its parent: it stands alone
                parents[row] = -1
        name.append(names.setdefault(own, len(names)))
    types: dict[str, int] = {}
    type_ = [types.setdefault(t, len(types)) if t else -1 for t in tree.type]
    return ApiModuleTree(
        names=tuple(names),
        name=i32(name),
        types=tuple(types),
        type=i32(type_),
        parent=i32(parents),
        is_fsdp=u8(tree.is_fsdp),
        param_bytes=f64(tree.param_bytes),
        buffer_bytes=f64(tree.buffer_bytes),
    )


def group_of(category: str) -> CategoryGroup:
    """The category whose colour it has."""
    return FOLDS_INTO.get(category, "unknown")  # type: ignore[return-value]


def in_order(categories: Iterable[str]) -> tuple[str, ...]:
    """Categories in their fixed order, none twice."""
    return tuple(
        sorted(set(categories), key=lambda name: _ORDER.get(name, len(_ORDER)))
    )


def column_of(columns: Mapping[str, Floats], name: str, like: Floats) -> Floats:
    """A category's column; 0 where others are known and it does not occur."""
    found = columns.get(name)
    return np.where(np.isnan(like), np.nan, 0.0) if found is None else found


def module_series(
    categories: Sequence[str], totals: Floats, held: Floats | None
) -> tuple[ModuleSeries, ...]:
    """Categories by (category, row) as a response has them."""
    nothing = np.full(totals.shape[1], np.nan)
    return tuple(
        ModuleSeries(
            name=name,
            group=group_of(name),
            total_bytes=f64(totals[index]),
            held_bytes=f64(nothing if held is None else held[index]),
        )
        for index, name in enumerate(categories)
    )
