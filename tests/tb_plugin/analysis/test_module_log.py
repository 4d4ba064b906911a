"""Event logs: sums at module states against a replay, invariants, hostile tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from memboard.collector.format.memory import CATEGORIES, STATES
from memboard.tb_plugin.analysis.modules.capture import LogError, module_log
from memboard.tb_plugin.analysis.modules.states import ALL_STATES
from tests.tb_plugin.analysis.module_logs import LogBuilder, Replay, random_log

DEVICES = ["cuda:0", "cpu"]


def by_name(log, column) -> dict[str, int]:
    return {
        name: int(size)
        for name, size in zip(log.categories, column, strict=True)
        if size
    }


def two_layers() -> LogBuilder:
    """A parent with two children: numbers small enough to follow by hand."""
    log = LogBuilder()
    root = log.module("Net")
    first, second = log.module("Net.a", root), log.module("Net.b", root)
    log.alloc(1000, "sharded_param", first)
    log.alloc(3000, "sharded_param", second)
    log.tick(5)
    log.at(root, "before_pre_forward")
    for child, kept, scratch in ((first, 100, 700), (second, 200, 40)):
        log.at(child, "before_pre_forward")
        log.alloc(kept, "activation", child)
        log.tick()
        log.alloc(scratch, "temp", child)
        log.tick()
        log.alloc(-scratch, "temp", child)
        log.tick()
        log.at(child, "after_post_forward")
    log.at(root, "after_post_forward")
    return log


def test_window_states_are_one_moment_for_all_modules():
    log = module_log(two_layers().tables(), ["cuda:0"])
    peak = log.at("window_peak", 0, None)
    assert peak.total_bytes.tolist() == [4800] * 3
    own = log.held(peak, 0)
    assert own.sum(axis=0).tolist() == [4800, 1800, 3000]
    assert log.peaks == ((4800, 4),)
    assert log.num_negative == log.num_repaired == 0
    start = log.at("window_start", 0, None)
    assert start.total_bytes.tolist() == [4000] * 3
    assert log.at("window_end", 0, None).total_bytes.tolist() == [4300] * 3
    assert np.isnan(log.at("before_optimizer", 0, None).total_bytes).all()


def test_states_lists_what_has_values():
    log = module_log(two_layers().tables(), ["cuda:0"])
    assert log.states(0) == (
        "before_pre_forward",
        "after_post_forward",
        "peak_forward",
        "window_start",
        "window_peak",
        "window_end",
    )


@pytest.mark.parametrize("seed", range(6))
def test_every_state_equals_the_replay(seed: int):
    built = random_log(seed)
    log = module_log(built.tables(), DEVICES)
    for device in (0, 1):
        replay = Replay(built, device)
        for state in log.states(device):
            if state not in STATES or "optimizer" in state:
                continue
            for call in (0, 1):
                table = log.at(state, device, call)
                own = log.held(table, device)
                for index in range(len(built.modules)):
                    row = log.tree.row_of[index]
                    moment = replay.moments(index, state)[call]
                    held = replay.held(moment)
                    assert by_name(log, table.totals[:, row]) == held
                    assert table.total_bytes[row] == sum(held.values())
                    assert by_name(log, own[:, row]) == replay.held(moment, index)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("state", "first", "last"),
    [
        ("peak_forward", "before_pre_forward", "after_post_forward"),
        ("peak_backward", "before_pre_backward", "after_post_backward"),
    ],
)
def test_peaks_equal_the_replay(seed: int, state: str, first: str, last: str):
    built = random_log(seed, num_modules=6)
    replay = Replay(built)
    log = module_log(built.tables(), DEVICES)
    for call in (0, 1):
        table = log.at(state, 0, call)
        own = log.held(table, 0)
        for index in range(len(built.modules)):
            row = log.tree.row_of[index]
            moment, size = replay.peak(index, first, last, call)
            assert table.total_bytes[row] == size
            assert table.event[row] == moment
            assert by_name(log, own[:, row]) == replay.held(moment, index)


@pytest.mark.parametrize("seed", range(3))
def test_without_a_call_the_one_that_held_most_is_shown(seed: int):
    log = module_log(random_log(seed, num_calls=3).tables(), DEVICES)
    for state in ("after_post_forward", "peak_backward"):
        table = log.at(state, 0, None)
        calls = np.stack([log.at(state, 0, call).total_bytes for call in range(3)])
        assert table.total_bytes.tolist() == calls.max(axis=0).tolist()
        assert table.call.tolist() == calls.argmax(axis=0).tolist()
        assert table.num_calls.tolist() == [3] * len(log.tree)
        assert log.max_calls(state) == 3
    assert np.isnan(log.at("after_post_forward", 0, 3).total_bytes).all()


@pytest.mark.parametrize("seed", range(3))
def test_moments_of_one_module_agree_with_the_tables(seed: int):
    log = module_log(random_log(seed).tables(), DEVICES)
    moments = log.moments(2, 0)
    assert (np.diff(moments.time_us) >= 0).all()
    assert len(moments.state) == 2 * (8 + 2)
    for row in range(len(moments.state)):
        state, call = ALL_STATES[moments.state[row]], int(moments.call[row])
        table = log.at(state, 0, call)
        assert moments.total_bytes[row] == table.total_bytes[2]
        assert moments.held_bytes[row] == log.held(table, 0)[:, 2].sum()


def test_a_call_that_never_ended_lasts_to_the_window_s_end():
    built = two_layers()
    built.boundaries = built.boundaries[:-1]  # the root's end was not reached
    built.alloc(9000, "temp", 0)
    log = module_log(built.tables(), ["cuda:0"])
    peak = log.at("peak_forward", 0, None)
    assert peak.total_bytes.tolist() == [13_300, 4800, 4340]


def test_what_means_nothing_is_set_right_and_counted():
    built = two_layers()
    tables = built.tables()
    events, bounds = tables["events"], tables["boundaries"]
    events["module"][2] = 99  # owner out of range
    events["category"][3] = len(CATEGORIES) + 3
    events["device"][7] = -4  # the last free: on no device
    events["delta_bytes"][6] = 2**62
    events["time_us"][4] = -(2**63)
    bounds["module"][1] = 77
    bounds["state"][2] = 1000
    bounds["event"][5] = 10**12
    tables["modules"]["parent"][:] = [2, 0, 1]  # a cycle
    log = module_log(tables, ["cuda:0"])
    assert log.num_repaired == 11
    assert log.categories[-1] == "other"
    table = log.at("after_post_forward", 0, None)
    assert table.total_bytes[0] == 4300
    assert log.tree.parent.tolist() == [-1, -1, -1]


@pytest.mark.parametrize(
    ("table", "column", "value", "words"),
    [
        ("events", "delta_bytes", np.full(8, np.nan), "whole numbers"),
        ("events", "delta_bytes", np.arange(3), "has 3 rows"),
        ("events", "time_us", None, "missing"),
        ("boundaries", "event", ("a",) * 6, "whole numbers"),
        ("modules", "fqn", np.arange(3), "texts"),
        ("modules", "parent", np.zeros((3, 2), np.int64), "whole numbers"),
    ],
)
def test_a_log_without_its_columns_is_refused(table, column, value, words):
    tables = two_layers().tables()
    if value is None:
        del tables[table][column]
    else:
        tables[table][column] = value
    with pytest.raises(LogError, match=words):
        module_log(tables, ["cuda:0"])


def test_a_missing_table_is_refused():
    tables = two_layers().tables()
    del tables["boundaries"]
    with pytest.raises(LogError, match="the table boundaries is missing"):
        module_log(tables, ["cuda:0"])


def test_an_empty_log_has_no_states_of_modules():
    log = module_log(LogBuilder().tables(), None)
    assert log.devices == ("device 0",)
    assert log.states(0) == ("window_start", "window_peak", "window_end")
    for state in ALL_STATES:
        assert len(log.at(state, 0, None).total_bytes) == 0


any_int = st.one_of(
    st.integers(-3, 30), st.sampled_from([-(2**63), 2**63 - 1, 2**40, -(2**40)])
)


@given(st.data())
def test_any_numbers_give_an_answer(data):
    built = random_log(data.draw(st.integers(0, 50)), 5, 1)
    tables = built.tables()
    for table, columns in (
        ("modules", ("parent", "is_fsdp", "param_bytes", "buffer_bytes")),
        ("events", ("time_us", "delta_bytes", "category", "device", "module")),
        ("boundaries", ("time_us", "event", "module", "state", "call")),
    ):
        for name in data.draw(st.sets(st.sampled_from(columns))):
            num = len(tables[table][name])
            tables[table][name] = data.draw(
                arrays.arrays(np.int64, num, elements=any_int)
            )
    log = module_log(tables, data.draw(st.sampled_from([None, [], ["a", "b"], 7])))
    for device in range(len(log.devices)):
        for state in ALL_STATES:
            for call in (None, 0, 10**9):
                table = log.at(state, device, call)
                assert log.held(table, device).shape == table.totals.shape
        for module in range(len(log.tree)):
            log.moments(module, device)
