"""How often an address was used before, against counting one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tb_plugin.analysis.allocator.lifetimes import Lifetimes
from tb_plugin.analysis.allocator.live import versions

addresses = st.lists(
    st.sampled_from([0, 512, -512, 2**63 - 512, -(2**63)]), max_size=40
)


def lives_at(addr: list[int]) -> Lifetimes:
    column, rows = np.array(addr, np.int64), np.arange(len(addr))
    return Lifetimes(column, rows, rows, rows, rows + 1, rows + 1, num_lost=0)


@given(addresses, st.data())
def test_each_row_counts_the_earlier_ones_at_its_address(addr, data):
    rows = data.draw(st.lists(st.integers(0, max(0, len(addr) - 1)), max_size=10))
    rows = rows if addr else []
    found = versions(lives_at(addr), np.array(rows, np.int64))
    assert found.tolist() == [addr[:row].count(addr[row]) for row in rows]
