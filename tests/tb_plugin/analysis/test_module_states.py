"""Tables of states, as reports list them."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.tb_plugin.analysis.modules.states import (
    ALL_STATES,
    MAX_CALLS_LISTED,
    ModuleStates,
)
from memboard.tb_plugin.analysis.modules.tree import tree_of_names

ROWS = [
    # module, state, call, device, activation, temp, total
    (0, "after_post_forward", 0, 0, 40, 2, 42),
    (0, "after_post_forward", 1, 0, 50, 1, 51),
    (1, "after_post_forward", 0, 0, 10, np.nan, 10),
    (1, "after_post_forward", 0, 1, 7, 7, 14),
    (1, "peak_forward", 0, 0, 90, 5, 95),
    (-1, "window_peak", 0, 0, 90, 6, 96),
    (9, "peak_forward", 0, 0, 1, 1, 2),  # no such module
]


@pytest.fixture
def states() -> ModuleStates:
    columns = list(zip(*ROWS, strict=True))
    return ModuleStates(
        tree=tree_of_names(["Net", "Net.a", "Net.b"]),
        devices=("cuda:0", "cpu"),
        categories=("activation", "temp"),
        module=np.array(columns[0]),
        state=np.array([ALL_STATES.index(name) for name in columns[1]]),
        call=np.array(columns[2]),
        device=np.array(columns[3]),
        bytes=np.array(columns[4:6], np.float64).T,
        total_bytes=np.array(columns[6], np.float64),
    )


def test_the_call_that_held_most_or_the_one_asked_for(states: ModuleStates):
    table = states.at("after_post_forward", 0, None)
    assert table.call.tolist() == [1, 0, -1]
    assert table.num_calls.tolist() == [2, 1, 0]
    assert table.total_bytes[:2].tolist() == [51, 10]
    assert np.isnan(table.total_bytes[2])
    assert table.totals[0][:2].tolist() == [50, 10]
    assert np.isnan(table.totals[1][1])
    first = states.at("after_post_forward", 0, 0)
    assert first.total_bytes[:2].tolist() == [42, 10]
    assert states.max_calls("after_post_forward") == 2
    assert states.held(table, 0) is None


def test_devices_are_apart(states: ModuleStates):
    table = states.at("after_post_forward", 1, None)
    assert np.isnan(table.total_bytes[0])
    assert table.total_bytes[1] == 14
    assert states.states(1) == ("after_post_forward",)
    assert states.peak(1) == (14, pytest.approx(np.nan, nan_ok=True))


def test_one_module_alone(states: ModuleStates):
    table = states.at("after_post_forward", 0, None, 1)
    assert np.isnan(table.total_bytes[[0, 2]]).all()
    assert table.total_bytes[1] == 10


def test_the_window_s_peak_is_that_of_all_modules(states: ModuleStates):
    assert states.at("window_peak", 0, None).total_bytes.tolist() == [96] * 3
    assert states.peak(0)[0] == 96
    assert states.states(0) == ("after_post_forward", "peak_forward", "window_peak")
    assert states.max_calls("window_end") == 0


def test_moments_of_one_module(states: ModuleStates):
    moments = states.moments(0, 0)
    assert [ALL_STATES[s] for s in moments.state] == ["after_post_forward"] * 2
    assert moments.call.tolist() == [0, 1]
    assert moments.total_bytes.tolist() == [42, 51]
    assert np.isnan(moments.held_bytes).all()
    assert moments.num_left_out == 0


def test_many_calls_are_cut_and_counted(states: ModuleStates):
    num = MAX_CALLS_LISTED + 5
    many = ModuleStates(
        tree=states.tree,
        devices=("cpu",),
        categories=("temp",),
        module=np.zeros(num, np.int64),
        state=np.zeros(num, np.int64),
        call=np.arange(num),
        device=np.zeros(num, np.int64),
        bytes=np.ones((num, 1)),
        total_bytes=np.ones(num),
    )
    assert len(many.moments(0, 0).state) == MAX_CALLS_LISTED
    assert many.moments(0, 0).num_left_out == 5
