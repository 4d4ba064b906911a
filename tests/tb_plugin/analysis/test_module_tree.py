"""Trees of modules out of whatever a file claims."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.arrays import depths
from memboard.tb_plugin.analysis.modules.event_sums import descendants
from memboard.tb_plugin.analysis.modules.tree import (
    MAX_DEPTH,
    lowest_with_most,
    module_tree,
    num_equal,
    tree_of_names,
)


def names(num: int) -> list[str]:
    return [f"m{index}" for index in range(num)]


def test_a_file_in_order_keeps_its_order():
    tree = module_tree(["Net", "Net.a", "Net.a.x", "Net.b"], np.array([-1, 0, 1, 0]))
    assert tree.fqn == ("Net", "Net.a", "Net.a.x", "Net.b")
    assert tree.parent.tolist() == [-1, 0, 1, 0]
    assert tree.row_of.tolist() == [0, 1, 2, 3]
    assert tree.num_repaired == 0


def test_children_before_their_parents_are_sorted_behind_them():
    tree = module_tree(
        ["Net.a.x", "Net.a", "Net"],
        np.array([1, 2, -1]),
        param_bytes=np.array([3, 2, -(2**63)]),
        is_fsdp=np.array([1, 0, 0]),
    )
    assert tree.fqn == ("Net", "Net.a", "Net.a.x")
    assert tree.parent.tolist() == [-1, 0, 1]
    assert tree.row_of.tolist() == [2, 1, 0]
    assert np.isnan(tree.param_bytes[0])  # not recorded is not zero
    assert tree.param_bytes[1:].tolist() == [2, 3]
    assert tree.is_fsdp.tolist() == [False, False, True]
    assert np.isnan(tree.buffer_bytes).all()
    assert tree.num_repaired == 0


def test_what_is_in_a_cycle_or_hangs_on_it_stands_alone():
    tree = module_tree(names(5), np.array([-1, 0, 3, 2, 3]))
    assert tree.parent.tolist() == [-1, 0, -1, -1, -1]
    assert tree.num_repaired == 3


def test_parents_that_are_not_there_are_none():
    tree = module_tree(names(4), np.array([-7, 9, 2, 0]))
    assert tree.parent.tolist() == [-1, -1, -1, 0]
    assert tree.num_repaired == 3


def test_depth_is_bounded():
    num = MAX_DEPTH + 40
    tree = module_tree(names(num), np.arange(num) - 1)
    assert depths(tree.parent).max() == MAX_DEPTH
    assert tree.num_repaired == 39


def test_dotted_names_make_a_tree():
    tree = tree_of_names(["Net", "Net.layers.0", "Net.layers.0.attn", "Other"])
    assert tree.parent.tolist() == [-1, 0, 1, -1]


@given(st.lists(st.integers(-3, 20), max_size=20))
def test_any_parents_give_a_tree(parents):
    tree = module_tree(names(len(parents)), np.array(parents, np.int64))
    assert sorted(tree.fqn) == sorted(names(len(parents)))
    assert (tree.parent < np.arange(len(tree))).all()
    for index, fqn in enumerate(names(len(parents))):
        assert tree.fqn[tree.row_of[index]] == fqn
    for row in range(len(tree)):
        below = descendants(tree.parent, row)
        for other in range(len(tree)):
            above = other
            while above >= 0 and above != row:
                above = int(tree.parent[above])
            assert below[other] == (above == row)


def test_equal_layers_are_numbered_and_of_one_type():
    fqns = ["N", "N.layers", "N.layers.0", "N.layers.1", "N.mlp", "N.mlp.0", "N.mlp.1"]
    types = ["Net", "ModuleList", "Block", "Block", "Sequential", "Linear", "GELU"]
    parent = np.array([-1, 0, 1, 1, 0, 4, 4])
    tree = module_tree(fqns, parent, type_=types)
    assert num_equal(tree).tolist() == [0, 2, 0, 0, 0, 0, 0]
    # Without types nobody knows.
    assert not num_equal(module_tree(fqns, parent)).any()
    held = np.array([100.0, 80, 40, 40, 20, 19, 1])
    assert lowest_with_most(parent, held, num_equal(tree)) == 1
    held = np.array([100.0, 10, 5, 5, 90, 89, 1])
    assert lowest_with_most(parent, held, num_equal(tree)) == 5
    held = np.array([100.0, 50, 25, 25, 50, 25, 25])
    assert lowest_with_most(parent, held, num_equal(tree)) == 0
