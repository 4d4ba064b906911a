"""The seven causes: each fires where it must, and not where it must not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_plugin.analysis.oom.case import NAMES, Case
from tb_plugin.analysis.oom.error import Elsewhere, FreeBlocks, Growth, OomFacts, filled
from tb_plugin.analysis.oom.full import full_share, is_full
from tb_plugin.analysis.oom.judge import verdict
from tb_plugin.analysis.oom.taken import USUAL_NON_TORCH_BYTES

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


def test_a_full_device_is_really_full():
    found = verdict(Case(facts=FULL_DEVICE))
    assert found.cause == "really_full"
    assert found.also == ()


@pytest.mark.parametrize(
    ("cause", "changes"),
    [
        (
            "fragmented",
            {
                "active_bytes": 60 * GIB,
                "free": FreeBlocks(18 * GIB, GIB, 412),
            },
        ),
        (
            "fitting_block_free",
            {"active_bytes": 60 * GIB, "elsewhere": Elsewhere(17 * GIB, "stream")},
        ),
        ("growth", {"growth": grown(20 * GIB)}),
        (
            "single_giant",
            {
                "requested_bytes": 60 * GIB,
                "reserved_bytes": 30 * GIB,
                "active_bytes": 29 * GIB,
                "device_free_bytes": 49 * GIB,
                "largest_before_bytes": GIB,
                "free": FreeBlocks(GIB, GIB, 1),
            },
        ),
        ("imbalance", {"peers_peak_bytes": (50 * GIB, 51 * GIB, 52 * GIB)}),
        (
            "non_torch",
            {"reserved_bytes": 50 * GIB, "active_bytes": 49 * GIB},
        ),
    ],
)
def test_each_cause_is_told(cause, changes):
    assert verdict(Case(facts=replace(FULL_DEVICE, **changes))).cause == cause


@pytest.mark.parametrize(
    "changes",
    [
        # Enough is free, and in one piece: nothing says why that did not serve.
        {"free": FreeBlocks(3 * GIB, 3 * GIB, 1)},
        # The pieces do not add up to the request.
        {"free": FreeBlocks(2 * GIB - 1, GIB, 9)},
        # The block elsewhere is too small.
        {"elsewhere": Elsewhere(2 * GIB - 1, "pool")},
        # What grew would not have covered what the device lacked, and is little.
        {"growth": grown(GIB - 1)},
        # Peers hold nearly as much.
        {"peers_peak_bytes": (65 * GIB, 66 * GIB)},
        # Requests of this size were served before.
        {"requested_bytes": 3 * GIB},
        # Contexts and communicators take as much anywhere.
        {"reserved_bytes": 77 * GIB, "active_bytes": 77 * GIB},
    ],
)
def test_what_looks_like_another_cause_is_none(changes):
    found = verdict(Case(facts=replace(FULL_DEVICE, **changes)))
    assert found.cause == "really_full"
    assert found.also == ()


def test_small_troubles_are_named_beside_a_full_device():
    facts = replace(FULL_DEVICE, growth=grown(4 * GIB))
    found = verdict(Case(facts=facts))
    assert found.cause == "really_full"
    assert found.also == ("growth",)
    assert [one.num_bytes for one in found.beside] == [4 * GIB]


def test_growth_that_made_no_difference_is_named_but_is_not_the_cause():
    """The device lacked 9 GiB, and 2 GiB of growth were in the way."""
    small = replace(
        FULL_DEVICE,
        requested_bytes=10 * GIB,
        reserved_bytes=40 * GIB,
        active_bytes=39 * GIB,
        most_reserved_bytes=40 * GIB,
        capacity_bytes=None,
        largest_before_bytes=9 * GIB,
        growth=grown(2 * GIB),
    )
    assert verdict(Case(facts=small)).also == ("growth",)
    assert verdict(Case(facts=small)).cause == "really_full"
    spare = replace(
        small, reserved_bytes=20 * GIB, active_bytes=10 * GIB, largest_before_bytes=None
    )
    assert (
        verdict(Case(facts=replace(spare, most_reserved_bytes=20 * GIB))).cause
        == "unsure"
    )


def test_the_heaviest_of_two_causes_is_the_verdict():
    facts = replace(
        FULL_DEVICE,
        active_bytes=40 * GIB,
        free=FreeBlocks(30 * GIB, GIB, 90),
        growth=grown(12 * GIB),
    )
    found = verdict(Case(facts=facts))
    assert (found.cause, found.also) == ("fragmented", ("growth",))


def test_growth_explains_why_a_rank_is_above_its_peers():
    facts = replace(
        FULL_DEVICE, growth=grown(20 * GIB), peers_peak_bytes=(45 * GIB, 45 * GIB)
    )
    found = verdict(Case(facts=facts))
    assert found.cause == "growth"
    assert "imbalance" not in found.also


def test_unsure_where_nothing_fits():
    empty = replace(
        FULL_DEVICE,
        reserved_bytes=78 * GIB,
        active_bytes=20 * GIB,
        free=FreeBlocks(58 * GIB, 50 * GIB, 3),
    )
    assert verdict(Case(facts=empty)).cause == "unsure"
    assert verdict(Case(facts=OomFacts())).cause == "unsure"


def test_other_usage_is_judged_by_the_peers_where_they_tell():
    facts = replace(
        FULL_DEVICE,
        reserved_bytes=66 * GIB,
        active_bytes=65 * GIB,
        most_reserved_bytes=66 * GIB,
    )
    assert facts.non_torch_bytes == 13 * GIB
    assert verdict(Case(facts=facts)).cause == "non_torch"
    usual = replace(facts, usual_non_torch_bytes=13 * GIB)
    assert verdict(Case(facts=usual)).cause == "really_full"


def test_room_that_was_lost_is_known_without_the_devices_size():
    facts = replace(
        FULL_DEVICE,
        capacity_bytes=None,
        reserved_bytes=50 * GIB,
        active_bytes=49 * GIB,
        most_reserved_bytes=70 * GIB,
    )
    assert facts.lost_room_bytes == 19 * GIB
    assert verdict(Case(facts=facts)).cause == "non_torch"
    assert (
        verdict(Case(facts=replace(facts, most_reserved_bytes=51 * GIB))).cause
        == "really_full"
    )


def test_a_limit_on_the_process_is_the_room():
    """The device had plenty; `set_per_process_memory_fraction` refused the request."""
    facts = replace(
        FULL_DEVICE,
        device_free_bytes=60 * GIB,
        reserved_bytes=15 * GIB,
        allocated_bytes=14 * GIB,
        active_bytes=14 * GIB,
    )
    assert facts.is_limited
    assert facts.room_bytes == 17 * GIB
    assert verdict(Case(facts=facts)).cause == "process_limit"
    known = replace(facts, limit_bytes=16 * GIB)
    assert full_share(known) == 14 / 16
    assert verdict(Case(facts=known)).cause == "process_limit"
    leaking = replace(known, growth=grown(8 * GIB))
    assert (verdict(Case(facts=leaking)).cause, verdict(Case(facts=leaking)).also) == (
        "growth",
        ("process_limit",),
    )


def test_what_waits_for_another_stream_is_neither_live_nor_unused():
    """68 GiB were freed, and a side stream had not passed the events of the frees."""
    facts = replace(FULL_DEVICE, allocated_bytes=9 * GIB, free=None)
    assert facts.pending_bytes == 68 * GIB
    assert facts.held_bytes == 9 * GIB
    assert facts.unused_bytes == GIB
    found = verdict(Case(facts=facts))
    assert (found.cause, found.also) == ("pending_free", ())
    assert found.leads.num_bytes == 68 * GIB
    little = replace(FULL_DEVICE, allocated_bytes=76 * GIB)
    assert verdict(Case(facts=little)).cause == "really_full"


def test_of_totals_alone_what_was_unused_is_told():
    """A report has no free blocks: reserved and not in use is all it knows."""
    facts = replace(FULL_DEVICE, free=None, active_bytes=None, allocated_bytes=60 * GIB)
    assert verdict(Case(facts=facts)).cause == "fragmented"
    assert (
        verdict(Case(facts=replace(facts, allocated_bytes=77 * GIB))).cause
        == "really_full"
    )


def test_what_splitting_leaves_free_is_not_why_a_usual_request_failed():
    """A few per cent of scattered free memory are in every healthy training."""
    full = replace(
        FULL_DEVICE,
        active_bytes=72 * GIB,
        free=FreeBlocks(6 * GIB, 512 * MIB, 300),
    )
    found = verdict(Case(facts=full))
    assert (found.cause, found.also) == ("really_full", ("fragmented",))
    # Nothing as large was ever asked for, and the pieces would have served it.
    unusual = replace(full, largest_before_bytes=GIB)
    assert verdict(Case(facts=unusual)).cause == "fragmented"
    much = replace(full, active_bytes=62 * GIB, free=FreeBlocks(16 * GIB, GIB, 300))
    assert verdict(Case(facts=much)).cause == "fragmented"


def test_live_memory_and_the_request_together_fill_it():
    facts = replace(
        FULL_DEVICE,
        requested_bytes=15 * GIB,
        device_free_bytes=9 * GIB,
        reserved_bytes=70 * GIB,
        active_bytes=58 * GIB,
        free=FreeBlocks(12 * GIB, 6 * GIB, 9),
        largest_before_bytes=15 * GIB,
    )
    assert verdict(Case(facts=facts)).cause == "really_full"
    assert verdict(Case(facts=replace(facts, active_bytes=30 * GIB))).cause == "unsure"


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
