"""Several private memory pools, looked at one by one: against the allocator's own totals.

The simulated allocator serves graphs' pools and the ordinary one on two streams, gives
segments back and takes their addresses again for other pools. What it held is written
down after each call, by pool.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, NamedTuple

import pytest

from tests.builders import RunBuilder
from tests.simulate import Form
from tests.simulate.allocator.allocator import CachingAllocator
from tests.simulate.history.history import History
from tests.simulate.history.sites import Sites
from tests.simulate.snapshots.events import snapshot
from tests.tb_plugin.pages.history_runs import Asked, asked_of

MIB = 1 << 20
POOLS = ((0, 0), (0, 1), (1, 0), (3, 2))
SIZES = (512, 4096, 65_536, MIB, 3 * MIB, 12 * MIB, 22 * MIB)
"""Of both size classes, and none that is rounded."""
CALLS = 600


class PoolTotals(NamedTuple):
    """What the allocator held after an event, by pool."""

    moment: int
    active: Counter[Any]
    reserved: Counter[Any]
    blocks: dict[Any, Counter[int]]
    """Sizes of blocks in use."""


def totals_of(allocator: CachingAllocator, moment: int) -> PoolTotals:
    totals = PoolTotals(
        moment, Counter(), Counter(), {pool: Counter() for pool in POOLS}
    )
    for segment in allocator.segments.values():
        pool = segment.arena.pool_id
        for block in segment.blocks():
            if block.mapped:
                totals.reserved[pool] += block.size_bytes
                if not block.is_free:
                    totals.active[pool] += block.size_bytes
                    totals.blocks[pool][block.size_bytes] += 1
    return totals


def played(seed: int, max_entries: int | None = None) -> tuple[Any, list[PoolTotals]]:
    """An allocator that worked for a while, and its totals after each call."""
    rng = random.Random(seed)
    history = History(max_entries)
    allocator = CachingAllocator(4 << 30, history=history)
    live: list[Any] = []
    totals = [totals_of(allocator, -1)]
    for call in range(CALLS):
        choice = rng.random()
        if choice < 0.5 or not live:
            pool = rng.choice(POOLS)
            allocator.use_pool(None if pool == (0, 0) else pool)
            live.append(allocator.allocate(rng.choice(SIZES), rng.choice((0, 0, 1))))
        elif choice < 0.96:
            block = live.pop(rng.randrange(len(live)))
            if rng.random() < 0.2:
                allocator.record_stream(block, 1 - block.stream)
            allocator.free(block)
        elif choice < 0.98:
            allocator.synchronize(rng.choice((0, 1)))
        else:
            allocator.use_pool(None)
            allocator.release_pool(rng.choice(POOLS[1:]))
            allocator.empty_cache()
        if call == CALLS // 2:  # addresses of one pool go to another one
            for block in live:
                allocator.free(block)
            live.clear()
            for pool in POOLS[1:]:
                allocator.release_pool(pool)
            for stream in (0, 1):
                allocator.synchronize(stream)
            allocator.use_pool(None)
            allocator.empty_cache()
        totals.append(totals_of(allocator, history.num_recorded - 1))
    return allocator, totals


def asked_and_totals(
    folder: Any, seed: int, torch: Any, max_entries: int | None
) -> tuple[Asked, list[PoolTotals], dict[Any, int]]:
    """The routes on it, the totals of the moments there are, and each pool's row."""
    allocator, totals = played(seed, max_entries)
    last = totals[-1].moment  # before the snapshot itself is noted
    made = snapshot([allocator], Sites(), Form(torch=torch))
    asked = asked_of(RunBuilder(folder / "exp"), made)
    lost = last + 1 - len(made["device_traces"][0])
    kept = [
        one._replace(moment=one.moment - lost) for one in totals if one.moment >= lost
    ]
    facts = asked.opened()["facts"]
    names = {
        (0, 0): "default",
        **{pool: f"({pool[0]}, {pool[1]})" for pool in POOLS[1:]},
    }
    rows = {pool: facts["pools"].index(name) for pool, name in names.items()}
    return asked, kept, rows


def kinds_of(found: dict[str, Any]) -> list[str]:
    """By segment: `large · pool (0, 1)`."""
    return [found["kinds"][kind] for kind in found["segments"]["kind"].tolist()]


def private_pool(kind: str) -> str | None:
    return next(
        (word[5:] for word in kind.split(" · ") if word.startswith("pool ")), None
    )


@pytest.mark.parametrize(("seed", "max_entries"), [(1, None), (2, None), (4, 500)])
def test_each_pool_alone_holds_what_the_allocator_says(tmp_path, seed, max_entries):
    asked, totals, rows = asked_and_totals(tmp_path, seed, "2.13", max_entries)
    for one in random.Random(seed).sample(totals, 25):
        whole = asked.get("segments", moment=one.moment)
        total = 0.0
        for pool, row in rows.items():
            found = asked.get("segments", moment=one.moment, pool=row)
            assert found["reserved_bytes"] == one.reserved[pool], (pool, one.moment)
            assert {private_pool(kind) for kind in kinds_of(found)} <= {
                None if pool == (0, 0) else f"({pool[0]}, {pool[1]})"
            }
            blocks, count = found["blocks"], found["blocks"]["state"] > 0
            assert Counter(blocks["size"][count].tolist()) == one.blocks[pool]
            held = asked.get("allocation_live", moment=one.moment, pool=row)
            assert held["active_bytes"] == one.active[pool]
            assert held["reserved_bytes"] == one.reserved[pool]
            total += found["reserved_bytes"]
        assert total == whole["reserved_bytes"] == sum(one.reserved.values())


@pytest.mark.parametrize("max_entries", [None, 500])
def test_tiles_of_pools_add_up_to_the_tile_of_all(tmp_path, max_entries):
    asked, totals, rows = asked_and_totals(tmp_path, 5, "2.13", max_entries)
    last = totals[-1].moment
    by_moment = {one.moment: one for one in totals}
    e0, e1 = last // 2, last // 2 + 200
    # As wide as events, so that each column is one moment.
    whole = asked.get("allocations", px=200, e0=e0, e1=e1)["columns"]
    assert whole["moment"].tolist() == list(range(e0, e1))
    active = reserved = 0
    ranges: Counter[str] = Counter()
    freed = ("allocated_bytes", "freed_bytes", "live_bytes")
    for pool, row in rows.items():
        columns = asked.get("allocations", px=200, e0=e0, e1=e1, pool=row)["columns"]
        for column, moment in enumerate(columns["moment"].tolist()):
            one = by_moment.get(moment)
            if one is not None:
                assert columns["active"][column] == one.active[pool], (pool, moment)
                assert columns["reserved"][column] == one.reserved[pool]
        active, reserved = active + columns["active"], reserved + columns["reserved"]
        held = asked.get("allocation_holders", px=200, e0=e0, e1=e1, pool=row)
        at_first = held["change"][held["column"] == 0].sum()
        assert at_first == columns["active"][0]
        part = asked.get("allocation_range", e0=e0, e1=e1, pool=row)
        ranges.update({name: part[name] for name in freed})
    assert (active == whole["active"]).all()
    assert (reserved == whole["reserved"]).all()
    of_all = asked.get("allocation_range", e0=e0, e1=e1)
    for name, total in ranges.items():
        assert total == of_all[name]


def test_a_pool_that_is_not_recorded_is_no_other_pool(tmp_path):
    """Before torch 2.13 events do not say it: of segments that are gone nothing does."""
    asked, totals, rows = asked_and_totals(tmp_path, 3, "2.11", None)
    some_unknown = False
    for one in random.Random(3).sample(totals, 25):
        whole = asked.get("segments", moment=one.moment)
        is_unknown = ["not recorded" in kind for kind in kinds_of(whole)]
        unknown = whole["segments"]["total_bytes"][is_unknown].sum()
        some_unknown |= bool(unknown)
        total = 0.0
        for pool, row in rows.items():
            found = asked.get("segments", moment=one.moment, pool=row)
            assert found["reserved_bytes"] <= one.reserved[pool]
            used = found["blocks"]["state"] > 0
            assert Counter(found["blocks"]["size"][used].tolist()) <= one.blocks[pool]
            held = asked.get("allocation_live", moment=one.moment, pool=row)
            assert held["active_bytes"] <= one.active[pool]
            assert held["reserved_bytes"] == found["reserved_bytes"]
            total += found["reserved_bytes"]
        assert total + unknown == sum(one.reserved.values())
    assert some_unknown
    at_end = totals[-1]
    for pool, row in rows.items():
        found = asked.get("segments", moment=at_end.moment, pool=row)
        assert found["reserved_bytes"] == at_end.reserved[pool]
