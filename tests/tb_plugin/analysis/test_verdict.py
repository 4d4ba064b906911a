"""The seven causes: each fires where it must, and not where it must not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.oom.case import (
    NAMES,
    Case,
    Elsewhere,
    FreeBlocks,
    Growth,
    OomFacts,
    filled,
)
from memboard.tb_plugin.analysis.oom.judge import verdict
from memboard.tb_plugin.analysis.oom.suspects.capacity import full_share, is_full
from memboard.tb_plugin.analysis.oom.suspects.consumers import USUAL_NON_TORCH_BYTES

MIB = 1 << 20
GIB = 1 << 30

# 80 GiB, of which 1 GiB is not torch's: a device that is full of what is live.
FULL_DEVICE = OomFacts(
    requested_bytes=2 * GIB,
    device_free_bytes=GIB,
    capacity_bytes=80 * GIB,
    reserved_bytes=78 * GIB,
    allocated_bytes=77 * GIB,
    active_bytes=77 * GIB,
    free=FreeBlocks(GIB, 512 * MIB, 30),
    largest_before_bytes=2 * GIB,
    most_reserved_bytes=78 * GIB,
)


def grown(num_bytes: int) -> Growth:
    return Growth(num_bytes, num_bytes / 10, 10, "steps")


SMALL = {
    "requested_bytes": 10 * GIB,
    "reserved_bytes": 39 * GIB,
    "active_bytes": 38 * GIB,
    "most_reserved_bytes": 39 * GIB,
    "capacity_bytes": None,  # with what is free a card of 40 GB, so that is taken for all
    "largest_before_bytes": 9 * GIB,
    "growth": grown(2 * GIB),
}
BESIDE = {
    "reserved_bytes": 66 * GIB,
    "active_bytes": 65 * GIB,
    "most_reserved_bytes": 66 * GIB,
}
LOST = {
    "capacity_bytes": None,
    "reserved_bytes": 50 * GIB,
    "active_bytes": 49 * GIB,
    "most_reserved_bytes": 70 * GIB,
}
LIMITED = {
    "device_free_bytes": 60 * GIB,
    "reserved_bytes": 15 * GIB,
    "allocated_bytes": 14 * GIB,
    "active_bytes": 14 * GIB,
}
TOTALS = {"free": None, "active_bytes": None, "allocated_bytes": 60 * GIB}
SCATTERED = {"active_bytes": 72 * GIB, "free": FreeBlocks(6 * GIB, 512 * MIB, 300)}
TOGETHER = {
    "requested_bytes": 15 * GIB,
    "device_free_bytes": 9 * GIB,
    "reserved_bytes": 70 * GIB,
    "active_bytes": 58 * GIB,
    "free": FreeBlocks(12 * GIB, 6 * GIB, 9),
    "largest_before_bytes": 15 * GIB,
}


@pytest.mark.parametrize(
    ("changes", "cause", "also"),
    [
        ({}, "really_full", ()),
        # Each cause.
        (
            {"active_bytes": 60 * GIB, "free": FreeBlocks(18 * GIB, GIB, 412)},
            "fragmented",
            (),
        ),
        (
            {"active_bytes": 60 * GIB, "elsewhere": Elsewhere(17 * GIB, "stream")},
            "fitting_block_free",
            (),
        ),
        ({"growth": grown(20 * GIB)}, "growth", ()),
        (
            {
                "requested_bytes": 60 * GIB,
                "reserved_bytes": 30 * GIB,
                "active_bytes": 29 * GIB,
                "device_free_bytes": 49 * GIB,
                "largest_before_bytes": GIB,
                "free": FreeBlocks(GIB, GIB, 1),
            },
            "single_giant",
            (),
        ),
        ({"peers_peak_bytes": (50 * GIB, 51 * GIB, 52 * GIB)}, "imbalance", ()),
        ({"reserved_bytes": 50 * GIB, "active_bytes": 49 * GIB}, "non_torch", ()),
        # Enough is free, and in one piece: nothing says why that did not serve.
        ({"free": FreeBlocks(3 * GIB, 3 * GIB, 1)}, "really_full", ()),
        # The pieces do not add up to the request.
        ({"free": FreeBlocks(2 * GIB - 1, GIB, 9)}, "really_full", ()),
        # The block elsewhere is too small.
        ({"elsewhere": Elsewhere(2 * GIB - 1, "pool")}, "really_full", ()),
        # What grew would not have covered what the device lacked, and is little.
        ({"growth": grown(GIB - 1)}, "really_full", ()),
        # Peers hold nearly as much.
        ({"peers_peak_bytes": (65 * GIB, 66 * GIB)}, "really_full", ()),
        # Requests of this size were served before.
        ({"requested_bytes": 3 * GIB}, "really_full", ()),
        # Contexts and communicators take as much anywhere.
        ({"reserved_bytes": 77 * GIB, "active_bytes": 77 * GIB}, "really_full", ()),
        # Small troubles are named beside a full device.
        ({"growth": grown(4 * GIB)}, "really_full", ("growth",)),
        # The device lacked 9 GiB, and 2 GiB of growth made no difference.
        (SMALL, "really_full", ("growth",)),
        (
            {
                **SMALL,
                "reserved_bytes": 20 * GIB,
                "active_bytes": 10 * GIB,
                "largest_before_bytes": None,
                "most_reserved_bytes": 20 * GIB,
            },
            "unsure",
            ("growth",),
        ),
        # Of two causes the heaviest.
        (
            {
                "active_bytes": 40 * GIB,
                "free": FreeBlocks(30 * GIB, GIB, 90),
                "growth": grown(12 * GIB),
            },
            "fragmented",
            ("growth",),
        ),
        # Growth explains why a rank is above its peers.
        (
            {"growth": grown(20 * GIB), "peers_peak_bytes": (45 * GIB, 45 * GIB)},
            "growth",
            (),
        ),
        # Nothing fits.
        (
            {"active_bytes": 20 * GIB, "free": FreeBlocks(58 * GIB, 50 * GIB, 3)},
            "unsure",
            (),
        ),
        # Other usage is judged by the peers where they tell.
        (BESIDE, "non_torch", ()),
        ({**BESIDE, "usual_non_torch_bytes": 13 * GIB}, "really_full", ()),
        # Room that was lost is known without the device's size.
        (LOST, "non_torch", ()),
        # 51 GiB is no card's: other processes may hold the rest of one.
        ({**LOST, "most_reserved_bytes": 51 * GIB}, "unsure", ()),
        (
            {**LOST, "capacity_bytes": 52 * GIB, "most_reserved_bytes": 0},
            "really_full",
            (),
        ),
        # The device had plenty: only a limit that was recorded explains it.
        (LIMITED, "unsure", ()),
        ({**LIMITED, "growth": grown(8 * GIB)}, "unsure", ()),
        ({**LIMITED, "limit_bytes": 40 * GIB}, "unsure", ()),
        ({**LIMITED, "limit_bytes": 16 * GIB}, "process_limit", ()),
        (
            {**LIMITED, "limit_bytes": 16 * GIB, "growth": grown(8 * GIB)},
            "growth",
            ("process_limit",),
        ),
        # It fits where it belongs: so it became free during the attempt, whatever else.
        ({"elsewhere": Elsewhere(2 * GIB, "here")}, "fitting_block_free", ()),
        (
            {"elsewhere": Elsewhere(2 * GIB, "here"), "growth": grown(20 * GIB)},
            "fitting_block_free",
            ("growth",),
        ),
        # 68 GiB were freed, and a side stream had not passed the events of the frees.
        ({"allocated_bytes": 9 * GIB, "free": None}, "pending_free", ()),
        ({"allocated_bytes": 76 * GIB}, "really_full", ("pending_free",)),
        # A report has no free blocks: reserved and not in use is all it knows.
        (TOTALS, "fragmented", ()),
        ({**TOTALS, "allocated_bytes": 77 * GIB}, "really_full", ()),
        # A few per cent of scattered free memory are in every healthy training.
        (SCATTERED, "really_full", ("fragmented",)),
        # Nothing as large was ever asked for, and the pieces would have served it.
        ({**SCATTERED, "largest_before_bytes": GIB}, "fragmented", ()),
        (
            {
                **SCATTERED,
                "active_bytes": 62 * GIB,
                "free": FreeBlocks(16 * GIB, GIB, 300),
            },
            "fragmented",
            (),
        ),
        # Live memory and the request together fill it.
        (TOGETHER, "really_full", ()),
        ({**TOGETHER, "active_bytes": 30 * GIB}, "unsure", ()),
    ],
)
def test_the_cause_and_what_is_named_beside_it(changes, cause, also):
    found = verdict(Case(facts=replace(FULL_DEVICE, **changes)))
    assert found.cause == cause
    assert found.also == also


def test_of_nothing_nothing_is_told():
    assert verdict(Case(facts=OomFacts())).cause == "unsure"


def test_what_numbers_follow_from_the_facts():
    def facts(changes) -> OomFacts:
        return replace(FULL_DEVICE, **changes)

    assert facts(BESIDE).non_torch_bytes == 13 * GIB
    assert facts(LOST).lost_room_bytes == 19 * GIB
    assert facts(LIMITED).has_room
    assert not facts(LIMITED).is_limited
    assert facts({**LIMITED, "limit_bytes": 16 * GIB}).is_limited
    assert facts(LIMITED).room_bytes == 75 * GIB
    assert full_share(facts({**LIMITED, "limit_bytes": 16 * GIB})) == 14 / 16
    # What waits for another stream is neither live nor unused.
    pending = facts({"allocated_bytes": 9 * GIB, "free": None})
    assert (pending.pending_bytes, pending.held_bytes) == (68 * GIB, 9 * GIB)
    assert pending.unused_bytes == GIB
    assert verdict(Case(facts=pending)).leads.num_bytes == 68 * GIB
    grew = verdict(Case(facts=facts({"growth": grown(4 * GIB)})))
    assert [one.num_bytes for one in grew.beside] == [4 * GIB]


def test_two_accounts_are_put_together():
    report = OomFacts(requested_bytes=1, reserved_bytes=5, capacity_bytes=10)
    replayed = OomFacts(requested_bytes=2, free=FreeBlocks(3, 3, 1))
    both = filled(replayed, report)
    assert both.requested_bytes == 2
    assert both.capacity_bytes == 10
    assert both.free == FreeBlocks(3, 3, 1)


sizes = st.none() | st.integers(0, 1 << 48)


@given(
    requested=sizes,
    free=sizes,
    capacity=sizes,
    limit=sizes,
    reserved=sizes,
    active=sizes,
    before=sizes,
    most=sizes,
    blocks=st.none() | st.builds(FreeBlocks, *[st.integers(0, 1 << 48)] * 3),
    peers=st.lists(st.integers(0, 1 << 48), max_size=3),
    grew=st.none() | st.integers(0, 1 << 48),
)
def test_any_numbers_have_a_verdict(
    requested,
    free,
    capacity,
    limit,
    reserved,
    active,
    before,
    most,
    blocks,
    peers,
    grew,
):
    """Contradictory facts too: one of the causes, named once, with its weight."""
    facts = OomFacts(
        requested_bytes=requested,
        device_free_bytes=free,
        capacity_bytes=capacity,
        limit_bytes=limit,
        reserved_bytes=reserved,
        active_bytes=active,
        largest_before_bytes=before,
        most_reserved_bytes=most,
        free=blocks,
        peers_peak_bytes=tuple(peers),
        growth=None if grew is None else grown(grew),
    )
    found = verdict(Case(facts=facts))
    assert found.cause in NAMES
    assert found.cause not in found.also
    assert len(set(found.also)) == len(found.also)
    if found.cause == "really_full":
        assert is_full(facts)


def test_usual_means_less_than_two_gib():
    assert USUAL_NON_TORCH_BYTES == 2 * GIB
