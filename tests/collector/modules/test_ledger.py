"""The log and the ledger by themselves: balances, resizes, rounding, a log that is full."""

from __future__ import annotations

import gc
from collections import Counter

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from memboard.collector.modules.ledger import Ledger
from memboard.collector.modules.log import (
    CATEGORY,
    STATE,
    EventLog,
    boundary_columns,
    event_columns,
    place,
)
from memboard.collector.modules.tensors import followed, plain_tensors, tensors_in
from memboard.collector.modules.tree import ModuleTree
from tests.collector.modules import models


def columns(log):
    return event_columns(log.events[:0], log.events, 0)


def held(log):
    """Bytes by (category, owner) that the log ends with."""
    found = Counter()
    table = columns(log)
    for delta, category, owner in zip(
        *(table[n].tolist() for n in ("delta_bytes", "category", "module")), strict=True
    ):
        found[category, owner] += delta
    return {key: size for key, size in found.items() if size}


actions = st.lists(
    st.one_of(
        st.tuples(st.just("new"), st.integers(0, 3000)),
        st.tuples(st.just("drop"), st.integers(0, 50)),
        st.tuples(st.just("resize"), st.integers(0, 50), st.integers(0, 3000)),
        st.tuples(
            st.just("assign"),
            st.integers(0, 50),
            st.integers(0, 13),
            st.integers(-1, 99),
        ),
        st.tuples(st.just("view"), st.integers(0, 50)),
    ),
    max_size=60,
)


@given(actions, st.sampled_from([1, 512]))
def test_the_log_always_ends_with_what_is_alive(actions, rounding):
    log = EventLog()
    ledger = Ledger(log, lambda _: rounding)
    alive, places = [], []
    for action, *values in actions:
        if action == "new":
            alive.append(torch.empty(values[0], dtype=torch.uint8))
            places.append((CATEGORY["activation"], -1))
            ledger.see(alive[-1])
            continue
        if not alive:
            continue
        index = values[0] % len(alive)
        if action == "drop":
            del alive[index], places[index]
        elif action == "resize":
            alive[index].untyped_storage().resize_(values[1])
            ledger.resized(alive[index].untyped_storage())
        elif action == "assign":
            ledger.assign(alive[index], values[1], values[2])
            places[index] = (values[1], values[2])
        else:
            ledger.see(alive[index].view(-1)[:0])
    expected = Counter()
    for tensor, where in zip(alive, places, strict=True):
        size = tensor.untyped_storage().nbytes()
        expected[where] += -(-size // rounding) * rounding
    assert held(log) == {key: size for key, size in expected.items() if size}
    rows = event_columns(ledger.alive(), log.events[:0], 0)
    assert rows["delta_bytes"].sum() == sum(expected.values())
    assert (rows["time_us"] == 0).all()
    alive.clear()
    tensor = None
    assert held(log) == {}
    assert tensor is None


def test_a_full_log_adds_nothing_and_still_ends_with_what_is_alive():
    log = EventLog(max_events=3)
    ledger = Ledger(log, lambda _: 1)
    tensors = [torch.empty(10) for _ in range(5)]
    for tensor in tensors:
        ledger.see(tensor)
    assert log.num_dropped == 2
    log.mark(STATE["before_optimizer"], -1, 0, False)
    assert log.num_boundaries == 0
    ledger.assign(tensors[0], CATEGORY["temp"], 7)
    assert held(log)[CATEGORY["temp"], 7] == 40
    tensors.clear()
    tensor = None
    gc.collect()
    assert held(log) == {}
    assert tensor is None


def test_a_window_with_a_full_log_says_so(track, monkeypatch):
    from memboard.collector.modules import session

    monkeypatch.setattr(session, "EventLog", lambda: EventLog(max_events=12))
    model = models.mlp()
    tracking = track(model)
    capture = tracking.step(lambda: model(torch.ones(4, 32)).sum().backward())
    assert capture.meta["incomplete"]
    assert capture.meta["num_events_dropped"] > 0
    assert "log was full" in capture.meta["reasons"][0]


def test_only_some_categories_may_be_taken():
    log = EventLog()
    ledger = Ledger(log, lambda _: 1)
    tensor = torch.empty(10, dtype=torch.uint8)
    ledger.assign(tensor, CATEGORY["param"], 3)
    ledger.assign(tensor, CATEGORY["input"], -1, only=frozenset({CATEGORY["temp"]}))
    assert held(log) == {(CATEGORY["param"], 3): 10}


def test_codes_hold_large_numbers():
    log = EventLog()
    ledger = Ledger(log, lambda _: 1)
    tensor = torch.empty(10, dtype=torch.uint8)
    ledger.assign(tensor, CATEGORY["other"], 2**24 - 3)
    ledger.assign(torch.empty(10, device="meta"), CATEGORY["temp"], -1)
    table = columns(log)
    assert table["module"].tolist() == [2**24 - 3, -1, -1]
    assert table["device"].tolist() == [0, 1, 1]
    assert table["storage"].tolist() == [0, 1, 1]
    assert [str(device) for device in ledger.devices] == ["cpu", "meta"]
    assert place(CATEGORY["param"], -1) == CATEGORY["param"]


def test_times_never_go_back():
    log = EventLog()
    log.events.extend((5000, 1, 0, 9000, 1, 0, 7000, -1, 0))
    assert columns(log)["time_us"].tolist() == [5, 9, 9]
    log.mark(STATE["after_optimizer"], -1, 4, True)
    bounds = boundary_columns(log.boundaries, 0, 10)
    assert bounds["event"].tolist() == [13]
    assert bounds["module"].tolist() == [-1]
    assert bounds["state"].tolist() == [STATE["after_optimizer"]]
    assert (bounds["in_backward"].tolist(), bounds["call"].tolist()) == ([1], [4])


def test_tensors_are_found_where_users_put_them():
    from dataclasses import dataclass

    @dataclass
    class Output:
        logits: torch.Tensor
        hidden: object = None

    a, b, c = (torch.ones(1) for _ in range(3))
    found = list(tensors_in([a, {"b": (b, 3, "x")}, Output(c), None]))
    assert [id(t) for t in found] == [id(t) for t in (a, b, c)]
    endless = []
    endless.append(endless)
    assert list(tensors_in(endless)) == []
    leaf = torch.ones(1, requires_grad=True)
    made = leaf * 2
    assert followed((leaf, made, a)) == [made]
    assert followed(made) == [made]
    assert followed(leaf) == []


@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_tensors_are_their_parts():
    dense = torch.eye(4)
    assert [t.nbytes for t in plain_tensors(dense.to_sparse())] == [64, 16]
    assert [t.nbytes for t in plain_tensors(dense.to_sparse_csr())] == [40, 32, 16]


def test_modules_are_numbered_in_pre_order_and_once():
    model = models.Transformer()
    model.again = model.layers[0]
    tree = ModuleTree(model)
    paths = [path for path, _ in model.named_modules()]
    assert tree.paths == paths
    assert tree.fqn(0) == "Transformer"
    assert tree.fqn(3) == f"Transformer.{paths[3]}"
    for index, path in enumerate(paths):
        inside = [i for i, p in enumerate(paths) if f"{p}.".startswith(f"{path}.")]
        if path:
            assert list(range(index, tree.last[index] + 1)) == inside
            assert tree.paths[tree.parents[index]] == path.rpartition(".")[0]
    assert tree.last[0] == len(tree) - 1
