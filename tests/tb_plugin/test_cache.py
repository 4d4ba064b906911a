"""What is cached in memory: one bound and one order of use for all readers."""

from __future__ import annotations

import gc
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.process import control_group
from memboard.tb_plugin import cache as module
from memboard.tb_plugin.cache import (
    ENTRY_OVERHEAD_BYTES,
    MAX_BYTES,
    SHARE,
    Cache,
    CacheMemory,
    bound_bytes,
)

BOUND = 10_000
USES = st.lists(
    st.tuples(
        st.sampled_from(["get", "put", "resize"]),
        st.integers(0, 2),
        st.integers(0, 5),
        st.integers(0, BOUND),
    ),
    max_size=60,
)


@given(USES)
def test_the_least_recently_used_goes_first_of_whichever_cache_it_is(uses):
    memory = CacheMemory(BOUND)
    caches = [Cache(memory) for _ in range(3)]
    model: OrderedDict[tuple[int, int], int] = OrderedDict()
    for what, number, key, size in uses:
        entry, cost = (number, key), size + ENTRY_OVERHEAD_BYTES
        if what == "get":
            assert caches[number].get(key) == (entry if entry in model else None)
            if entry in model:
                model.move_to_end(entry)
            continue
        if what == "put":
            caches[number].put(key, entry, size)
            model.pop(entry, None)
            if cost <= BOUND:
                model[entry] = cost
        else:
            caches[number].resize(key, size)
            if entry in model:
                model[entry] = cost
        while sum(model.values()) > BOUND:
            model.popitem(last=False)
        assert memory.num_bytes == sum(model.values()) <= BOUND
        held = {(n, k) for n, one in enumerate(caches) for k in one}
        assert held == set(model)


def test_what_is_shown_stays_though_it_exceeds_the_bound_by_itself():
    memory = CacheMemory(BOUND)
    shown, others = Cache(memory), Cache(memory)
    shown.show(2)
    for key in "abc":
        shown.put(key, key, BOUND)
    others.put("x", "x", 10)
    assert list(shown) == ["b", "c"]
    assert len(others) == 0, "there is no room beside what is shown"
    shown.show(1)
    others.put("x", "x", 10)
    assert list(shown) == ["c"]


def test_a_cache_that_nobody_has_any_more_leaves_its_room_to_others():
    memory = CacheMemory(BOUND)
    gone, other = Cache(memory), Cache(memory)
    gone.put("a", "a", BOUND - 1000)
    other.put("old", "old", 0)
    del gone
    gc.collect()
    other.put("new", "new", BOUND - 2000)
    assert list(other) == ["old", "new"]
    assert memory.num_bytes == BOUND - 2000 + 2 * ENTRY_OVERHEAD_BYTES


@pytest.mark.parametrize(
    ("whole", "bound"),
    [(16 << 30, MAX_BYTES), (1 << 40, MAX_BYTES), (2 << 30, int((2 << 30) * SHARE))],
)
def test_the_bound_is_a_share_of_the_memory_and_at_most_2_gib(
    whole, bound, monkeypatch
):
    monkeypatch.setattr(module, "machine_bytes", lambda: whole)
    assert bound_bytes() == bound


def test_a_control_group_counts_as_the_machine(monkeypatch, tmp_path):
    (tmp_path / "memory.max").write_text(f"{1 << 30}\n")
    group = control_group.ControlGroup(tmp_path, control_group._VERSION_2)
    monkeypatch.setattr(control_group, "_own_group", lambda: group)
    assert bound_bytes() == int((1 << 30) * SHARE)


def test_what_is_read_through_once_displaces_nothing_else():
    memory = CacheMemory(BOUND)
    other, blocks = Cache(memory), Cache(memory, max_bytes=3000)
    other.put("a", "a", 5000)
    for key in range(20):
        blocks.put(key, key, 1000 - ENTRY_OVERHEAD_BYTES)
    blocks.put("large", "large", 4000)
    assert list(blocks) == [17, 18, 19]
    assert other.get("a") == "a"
