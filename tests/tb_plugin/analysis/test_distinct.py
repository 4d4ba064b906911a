"""Distinct numbers: as numpy has them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_plugin.analysis.series import distinct as module
from tb_plugin.analysis.series.distinct import distinct, grouped


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3)))
def test_each_number_comes_once_and_in_order(values):
    column = np.array(values, np.int64)
    assert distinct(column).tolist() == sorted(set(values))
    assert distinct(column).dtype == column.dtype


@given(st.lists(st.integers(0, 50)))
@pytest.mark.parametrize("most", [0, 1 << 22])
def test_keys_are_grouped_whether_they_are_marked_or_sorted(most, values):
    keys = np.array(values, np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MOST_MARKED", most)
        known, place = grouped(keys, 51)
    assert known.tolist() == sorted(set(values))
    assert known[place].tolist() == values
