"""Lists of the same objects are found, whatever their hashes say."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collector.format.snapshots import alike
from collector.format.snapshots.alike import same_lists

OBJECTS = [{"n": n % 3} for n in range(6)]
"""Some are equal; none is another."""

some_lists = st.lists(
    st.lists(st.sampled_from(range(6)), max_size=5).map(
        lambda places: [OBJECTS[place] for place in places]
    ),
    max_size=40,
)


def check(lists):
    first, of_list = same_lists(lists)
    keys = [tuple(map(id, one)) for one in lists]
    assert len(first) == len(set(keys))
    assert [keys[first[number]] for number in of_list.tolist()] == keys
    assert all(keys.index(keys[place]) == place for place in first)
    assert first == sorted(first)


@given(some_lists)
def test_each_list_is_said_to_equal_the_first_of_its_kind(lists):
    check(lists)


@given(some_lists)
def test_hashes_that_collide_change_nothing(lists):
    powers = alike._powers
    try:
        alike._powers = lambda count: np.zeros(count, np.uint64)
        check(lists)
    finally:
        alike._powers = powers


def test_no_list_and_empty_ones():
    assert same_lists([])[0] == []
    first, of_list = same_lists([[], [], [OBJECTS[0]], []])
    assert of_list.tolist().count(of_list[0]) == 3
    assert len(first) == 2
