"""What operators call, merged by name from chosen calls downwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from tb_plugin.analysis.trace.trace import NOTHING

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.time.operator_times import OperatorTimes

    Ints: TypeAlias = npt.NDArray[Any]

MAX_DEPTH: Final = 40
"""Levels below the chosen calls that are told apart; deeper ones count for the last."""


class Callee(NamedTuple):
    """Operators, annotations and runtime calls of one path of names."""

    path: tuple[int, ...]
    """Rows of `Trace.strings`, the outermost first; empty: the chosen calls themselves."""
    num_calls: int
    host_self_ns: int
    device_self_ns: int


def callees(times: OperatorTimes, calls: Ints, most: int) -> list[Callee]:
    """Of some operators' calls, the paths below them, callers before what they call.

    Self times of all paths add up to the calls' totals. Of more than `most` paths the
    longest are kept; what the others took counts for the one around them. A chosen call
    inside another one is taken for a part of that.
    """
    node_of, parent, name = _merged(times, calls)
    inside = np.flatnonzero(node_of >= 0)
    nodes, num = node_of[inside], len(parent)

    def sums(values: Ints) -> list[int]:
        found = np.zeros(num, dtype=np.int64)
        np.add.at(found, nodes, values)
        return list(map(int, found))

    num_calls = sums(np.ones(len(inside), dtype=np.int64))
    host, device = (
        sums(values[inside]) for values in (times.host_self_ns, times.device_self_ns)
    )
    kept = _longest(parent, host, device, most)
    for node in range(num - 1, 0, -1):
        if not kept[node]:
            host[parent[node]] += host[node]
            device[parent[node]] += device[node]
    paths: list[tuple[int, ...]] = [()]
    for node in range(1, num):
        paths.append((*paths[parent[node]], name[node]) if kept[node] else ())
    return [
        Callee(paths[node], num_calls[node], host[node], device[node])
        for node in range(num)
        if kept[node]
    ]


def _merged(times: OperatorTimes, calls: Ints) -> tuple[Ints, list[int], list[int]]:
    """(slices,): the node of each slice, or -1; and by node its parent and its name.

    Node 0 stands for the calls; parents come before what is below them.
    """
    slices, tree = times.trace.slices, times.tree
    node_of = np.full(len(slices), NOTHING, dtype=np.int64)
    depth = np.zeros(len(slices), dtype=np.int64)
    node_of[calls] = 0
    parent, name = [NOTHING], [NOTHING]
    known: dict[tuple[int, int], int] = {}

    def node_for(key: tuple[int, int]) -> int:
        if key not in known:
            known[key] = len(parent)
            parent.append(key[0])
            name.append(key[1])
        return known[key]

    num_names = len(times.trace.strings)
    for level in slices.by_level:
        up = tree.parent[level]
        below = tree.kept[level] & (up != NOTHING)
        below &= node_of[up] != NOTHING
        rows, up = level[below], up[below]
        depth[rows] = depth[up] + 1
        deep = depth[rows] > MAX_DEPTH
        node_of[rows[deep]] = node_of[up[deep]]
        rows, up = rows[~deep], up[~deep]
        keys = node_of[up] * num_names + slices.name[rows].astype(np.int64)
        # A path may be met at several levels: all its slices are of one node.
        found, at = np.unique(keys, return_inverse=True)
        nodes = [node_for(divmod(key, num_names)) for key in found.tolist()]
        node_of[rows] = np.array(nodes, dtype=np.int64)[at]
    return node_of, parent, name


def _longest(
    parent: list[int], host: list[int], device: list[int], most: int
) -> npt.NDArray[np.bool_]:
    """(nodes,): the first `most` by the time of all below; none without its parent."""
    total = [h + d for h, d in zip(host, device, strict=True)]
    for node in range(len(parent) - 1, 0, -1):
        total[parent[node]] += total[node]
    # What is around another is no shorter, and stands before it.
    order = np.argsort(-np.array(total, dtype=np.int64), kind="stable")
    kept = np.zeros(len(parent), dtype=bool)
    kept[order[: max(most, 1)]] = True
    return kept
