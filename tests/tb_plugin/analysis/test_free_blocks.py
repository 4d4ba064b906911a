"""Free memory and who may use it, against what the allocator model then really does."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.allocator.moment.arenas import (
    arenas,
    free_sizes,
    releasable,
)
from memboard.tb_plugin.analysis.allocator.moment.fit import fit, obstacle
from memboard.tb_plugin.analysis.allocator.moment.pins import pins
from memboard.tb_plugin.analysis.allocator.rounding import Rounding, rounding_of
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.snapshots.snapshot import INACTIVE
from tests.simulate.allocator.allocator import SimulatedOutOfMemoryError
from tests.simulate.allocator.settings import MIB, parse_settings
from tests.simulate.allocator.stats import LARGE, RESERVED
from tests.simulate.history.history import SEGMENT_ALLOC, SEGMENT_MAP
from tests.tb_plugin.analysis.snapshots import SETTINGS, Modelled, operations, replay_of

endings = st.tuples(
    st.builds(operations, st.integers(0, 2**32), st.integers(1, 120)),
    st.sampled_from(SETTINGS),
)
NOTED = [("use_pool", 0, 0), ("allocate", 1, 0)]
"""What another stream has finished becomes free with the next allocation; what was freed
during a capture begins to wait with it."""
SETTLED = [*NOTED, *(("synchronize", stream, 0) for stream in range(3)), *NOTED]


ended = endings.map(lambda made: Modelled(*made)).filter(lambda made: made.device)


def at_end(model: Modelled):
    replay = replay_of(model)
    return replay, replay.at(replay.num_events - 1)


@given(endings, st.integers(1, 60 * MIB), st.integers(0, 1), st.integers(0, 2))
def test_a_request_goes_where_it_was_said_to_go(made, wanted, stream, pool):
    model = Modelled([*made[0], *NOTED], made[1])
    if model.device is None:
        return
    replay, state = at_end(model)
    pool_id = (0, pool) if pool else (0, 0)
    allocator, history = model.allocator, model.allocator.history
    if pool_id not in model.snapshot.pools:
        return
    found = fit(
        state,
        replay.rounding,
        wanted,
        pool=model.snapshot.pools.index(pool_id),
        # torch shows a stream's pointer; the model's first other one is number 1.
        stream=0 if not stream else len(model.snapshot.streams) - 1,
    )
    if stream and len(model.snapshot.streams) == 1:
        return
    assert found.size == parse_settings(made[1]).round_size(wanted)
    allocator.use_pool(pool_id if pool else None)
    before = history.num_recorded
    block = None
    with suppress(SimulatedOutOfMemoryError):
        block = allocator.allocate(wanted, stream)
    rows = list(history.rows())[before - history.num_recorded :]
    opened = [
        size for action, _, size, *_ in rows if action in (SEGMENT_ALLOC, SEGMENT_MAP)
    ]
    assert found.fits == (block is not None and not opened)
    if found.fits and "expandable" not in made[1]:
        # Among equal ones torch 2.13 takes that of the oldest segment, which no snapshot
        # tells.
        taken = np.flatnonzero(state.blocks.address == block.address)
        assert state.blocks.size[taken] == state.blocks.size[found.block]
        assert state.blocks.state[found.block] == INACTIVE
    if opened and "expandable" not in made[1]:
        assert sum(opened) == found.new_segment_bytes
    assert found.largest <= found.free


@given(endings)
def test_emptying_the_cache_gives_back_what_was_said(made):
    model = Modelled([*made[0], *SETTLED], made[1])
    if model.device is None:
        return
    _, state = at_end(model)
    stats = model.allocator.stats
    before = stats.get(RESERVED)
    model.allocator.empty_cache()
    assert int(releasable(state).sum()) == before - stats.get(RESERVED)


@given(ended)
def test_arenas_are_the_lists_of_the_model(model):
    _, state = at_end(model)
    found = arenas(state)
    pools, streams = model.snapshot.pools, model.snapshot.streams
    own = {
        (pools[pool], streams[stream] != 0, bool(large)): (total, most)
        for pool, stream, large, total, most in zip(
            found.pool,
            found.stream,
            found.is_large,
            found.free_bytes.tolist(),
            found.largest_free_bytes.tolist(),
            strict=True,
        )
        if total
    }
    truth = {
        (arena.pool_id, arena.stream != 0, arena.pool == LARGE): (
            sum(size for size, _, _ in arena.free),
            max(size for size, _, _ in arena.free),
        )
        for arena in model.allocator.arenas()
        if arena.free
    }
    assert own == truth
    assert int(found.reserved_bytes.sum()) == state.reserved_bytes
    assert (np.diff(found.reserved_bytes) <= 0).all()


@given(ended)
def test_the_histogram_holds_every_free_block_once(model):
    _, state = at_end(model)
    found = free_sizes(state)
    free = state.blocks.size[state.blocks.state == INACTIVE]
    assert int(found.split_bytes.sum() + found.whole_bytes.sum()) == int(free.sum())
    assert int(found.num_split.sum() + found.num_whole.sum()) == len(free)
    for row, low in enumerate(found.from_bytes.tolist()):
        inside = np.count_nonzero((free >= low) & (free < 2 * low))
        assert inside == found.num_split[row] + found.num_whole[row]
    whole = state.segments.total_size[state.segments.num_active == 0]
    assert int(found.whole_bytes.sum()) == int(whole.sum())


@given(ended)
def test_pins_are_what_live_blocks_keep_reserved(model):
    replay, state = at_end(model)
    pinned, pinners = pins(state, replay.lives.stack, len(state.blocks))
    segments, blocks = state.segments, state.blocks
    holders = defaultdict(lambda: defaultdict(int))
    for row in range(len(blocks)):
        if blocks.life[row] != NOTHING:
            stack = int(replay.lives.stack[blocks.life[row]])
            holders[int(blocks.segment[row])][stack] += int(blocks.size[row])
    free = segments.free_size - releasable(state)
    partly = {s for s in holders if free[s] > 0}
    segment_of = {int(at): row for row, at in enumerate(segments.address)}
    found = [segment_of[at] for at in pinned.address.tolist()]
    assert set(found) == partly
    assert (np.diff(segments.free_size[found]) <= 0).all()
    for row, segment in enumerate(found):
        held = holders[segment]
        assert pinned.live_bytes[row] == sum(held.values())
        assert held[int(pinned.stack[row])] == max(held.values())
    units = units_of(state, replay.lives.stack)
    kept = sum(num for stacks, num in units if stacks)
    assert kept == free[sorted(partly)].sum()
    keeps = {stack for stacks, num in units if num for stack in stacks}
    assert set(pinners.stack.tolist()) == keeps
    for row, stack in enumerate(pinners.stack.tolist()):
        own = [s for s in partly if stack in holders[s]]
        assert pinners.num_segments[row] == len(own)
        assert pinners.live_bytes[row] == sum(holders[s][stack] for s in own)
        alone = [num for stacks, num in units if stacks == {stack}]
        shared = [num for stacks, num in units if stack in stacks]
        assert pinners.alone_bytes[row] == sum(alone)
        assert pinners.shared_bytes[row] == sum(shared) - sum(alone)


def units_of(state, life_stack):
    """What goes back to the device as a whole: the stacks in it, and its free bytes."""
    segments, blocks = state.segments, state.blocks
    stacks, free = defaultdict(set), defaultdict(int)
    for row in range(len(blocks)):
        segment = int(blocks.segment[row])
        page = 20 * MIB if segments.is_large[segment] else 2 * MIB
        if not segments.is_expandable[segment] or segments.pool[segment] > 0:
            page = int(segments.total_size[segment])
        start = int(blocks.address[row] - segments.address[segment])
        end = start + int(blocks.size[row])
        for number in range(start // page, (end - 1) // page + 1):
            unit = segment, number
            if blocks.state[row] == INACTIVE:
                inside = min(end, (number + 1) * page) - max(start, number * page)
                free[unit] += inside
            else:
                stacks[unit].add(int(life_stack[blocks.life[row]]))
    return [(stacks[unit], free[unit]) for unit in stacks.keys() | free.keys()]


@given(ended, st.integers(1, 60 * MIB))
def test_what_is_in_the_way_is_the_least_that_need_be_freed(model, wanted):
    replay, state = at_end(model)
    found = fit(state, replay.rounding, wanted)
    way = obstacle(state, found, replay.lives.stack, pool=0, stream=0)
    segments, blocks = state.segments, state.blocks
    costs = []
    for row in range(len(segments)):
        if segments.is_large[row] != found.is_large or segments.stream[row] != 0:
            continue
        if max(0, segments.pool[row]) != 0:
            continue
        own = np.flatnonzero(blocks.segment == row)
        for start in range(len(own)):
            for end in range(start + 1, len(own) + 1):
                part = own[start:end]
                if blocks.size[part].sum() >= found.size:
                    held = part[blocks.state[part] != INACTIVE]
                    costs.append(int(blocks.size[held].sum()))
    if not costs:
        assert way is None
        return
    assert way.live_bytes == min(costs)
    inside = blocks.address >= way.address
    inside &= blocks.address < way.address + way.size
    held = np.flatnonzero(inside & (blocks.state != INACTIVE))
    assert way.size >= found.size
    assert way.size == blocks.size[inside].sum()
    assert sorted(way.lives) == sorted(blocks.life[held])
    assert way.live_bytes == blocks.size[held].sum()
    stacks = replay.lives.stack[blocks.life[held]]
    assert way.stack in stacks if len(held) else way.stack == NOTHING


# Rounding.


@given(st.lists(st.integers(1, 1 << 41), min_size=1), st.sampled_from(SETTINGS))
def test_sizes_are_rounded_as_the_model_rounds_them(wanted, text):
    model = Modelled([("allocate", 1, 0)], text)
    rounding = rounding_of(model.snapshot.settings)
    truth = [parse_settings(text).round_size(size) for size in wanted]
    assert rounding.sizes(np.array(wanted)).tolist() == truth


def test_settings_that_are_no_settings_are_torchs_defaults():
    wrong = {
        "max_split_size": "much",
        "roundup_power2_divisions": {"1": 3, "two": 4, "65536": 2, "4": True, "8": 4},
        "expandable_segments": "yes",
    }
    found = rounding_of(wrong)
    assert found.max_split_bytes is None
    assert found.divisions == (0, 0, 0, 4, *[0] * 12)
    assert not found.expandable
    assert rounding_of({}) == Rounding()
    assert not Rounding().is_known


@pytest.mark.parametrize(
    ("size", "segment"),
    [(512, 2), (MIB, 2), (MIB + 512, 20), (10 * MIB - 512, 20), (10 * MIB, 10)],
)
def test_segments_have_the_sizes_torch_documents(size, segment):
    assert Rounding().segment_size(size) == segment * MIB
    assert Rounding().segment_size(33 * MIB + 1) == 34 * MIB
