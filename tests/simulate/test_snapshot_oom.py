"""Each simulated out-of-memory error is what its label says, recounted from its events."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.simulate import OOM_CAUSES, oom_case, second_causes

SEEDS = range(3)
CASES = [
    (cause, also, seed)
    for cause in OOM_CAUSES
    for seed in SEEDS
    for also in (None, *second_causes(cause))[: 2 if seed else None]
]


@pytest.fixture(scope="module")
def cases():
    made: dict = {}

    def case(cause, also, seed):
        key = (cause, also, seed)
        if key not in made:
            made[key] = oom_case(cause, seed, also=also, torch="2.13")
        return made[key]

    return case


def state_at_oom(snapshot: dict) -> tuple[dict, int, dict]:
    """Blocks in use at the oom event (address to requested bytes), reserved, the event.

    By going back from the end: the ring may have lost the beginning.
    """
    (trace,) = snapshot["device_traces"]
    (place,) = [i for i, event in enumerate(trace) if event["action"] == "oom"]
    live = {
        block["address"]: block["requested_size"]
        for segment in snapshot["segments"]
        for block in segment["blocks"]
        if block["state"] != "inactive"
    }
    reserved = sum(segment["total_size"] for segment in snapshot["segments"])
    for event in reversed(trace[place + 1 :]):
        action, size = event["action"], event["size"]
        if action == "free_completed":
            live[event["addr"]] = size
        elif action == "alloc":
            assert live.pop(event["addr"]) == size
        elif action in ("segment_alloc", "segment_map"):
            reserved -= size
        elif action in ("segment_free", "segment_unmap"):
            reserved += size
    return live, reserved, trace[place]


@pytest.mark.parametrize(("cause", "also", "seed"), CASES)
def test_the_label_is_what_the_snapshot_shows(cases, cause, also, seed):
    case = cases(cause, also, seed)
    label = case.label
    snapshot = case.snapshot()
    live, reserved, event = state_at_oom(snapshot)
    assert (label.cause, label.also) == (cause, () if also is None else (also,))
    assert event["size"] == label.requested_bytes
    assert event["device_free"] == label.device_free_bytes
    assert reserved == label.reserved_bytes
    in_use = reserved + label.non_torch_bytes + label.device_free_bytes
    assert in_use == label.device_total_bytes
    assert label.allocated_bytes <= label.active_bytes <= label.reserved_bytes
    requested = sum(live.values())
    assert 0.99 * label.active_bytes <= requested <= label.active_bytes
    held = sum(label.holders.values())
    assert held <= requested
    # What differs is pending: freed, and still in use by the other stream.
    assert requested - held <= label.active_bytes - label.allocated_bytes + 512 * 4096
    if also is not None:
        assert 0 < label.planted_bytes[also] < 0.08 * label.device_total_bytes
        assert label.planted_bytes[also] < label.planted_bytes.get(cause, held) / 2


@pytest.mark.parametrize(("cause", "also", "seed"), CASES)
def test_the_cause_is_there_and_the_others_are_not(cases, cause, also, seed):
    label = cases(cause, also, seed).label
    total, asked = label.device_total_bytes, label.requested_bytes
    outside = label.non_torch_bytes - label.context_bytes
    shows = {
        "fragmented": label.same_free_bytes >= asked > label.same_largest_bytes,
        "fitting_block_free": label.other_largest_bytes >= asked,
        "non_torch": outside > 0.1 * total,
        "growth": label.planted_bytes.get("growth", 0) > 0.1 * total,
        "single_giant": asked >= 2 * label.largest_earlier_bytes,
        "imbalance": bool(label.peers_peak_bytes)
        and label.active_bytes > 1.2 * np.median(label.peers_peak_bytes),
    }
    assert [name for name, shown in shows.items() if shown] == (
        [] if cause == "really_full" else [cause]
    )
    if cause == "really_full":
        assert label.active_bytes > 0.85 * total


def test_a_request_that_failed_would_not_have_fitted_anywhere(cases):
    for key in CASES:
        label = cases(*key).label
        assert label.same_largest_bytes < label.requested_bytes
        # Large segments are whole multiples of 2 MiB.
        assert label.device_free_bytes < label.requested_bytes + (2 << 20)


def test_equal_seeds_give_equal_cases_and_others_differ():
    for cause in ("growth", "imbalance"):
        one, two, other = (oom_case(cause, seed) for seed in (5, 5, 6))
        assert one.label == two.label != other.label
        for rank in range(len(one.ranks)):
            assert one.snapshot(rank) == two.snapshot(rank)


def test_cases_vary(cases):
    seen = [cases(*key) for key in CASES]
    labels = [case.label for case in seen]
    assert len({label.device_total_bytes for label in labels}) > 20
    assert len({label.site for label in labels}) > 6
    assert {label.unwound for label in labels} == {True, False}
    assert {len(case.ranks) for case in seen} > {1, 3}
    settings = Counter(case.snapshot()["segments"][0]["is_expandable"] for case in seen)
    assert settings[True] > 5
    assert settings[False] > 5
    versions = {oom_case("single_giant", seed).form.torch for seed in range(12)}
    assert versions == {"2.1", "2.6", "2.11", "2.13"}


def test_peers_did_not_fail(cases):
    case = cases("imbalance", None, 0)
    for rank in range(len(case.ranks)):
        (trace,) = case.snapshot(rank)["device_traces"]
        num_ooms = sum(event["action"] == "oom" for event in trace)
        assert num_ooms == (rank == case.label.rank)
    assert len(case.label.peers_peak_bytes) == len(case.ranks) - 1


@pytest.mark.parametrize("cause", ["really_full", "growth", "non_torch", "imbalance"])
def test_the_allocator_s_settings_do_not_give_the_cause_away(cause):
    found = {
        oom_case(cause, seed).ranks[0].machine.settings.expandable_segments
        for seed in range(20, 27)
    }
    assert found == {True, False}
