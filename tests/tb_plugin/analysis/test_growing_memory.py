"""Memory that grows is found, with its pace; memory that does not is left alone."""

from __future__ import annotations

import re

import numpy as np
import pytest

from memboard.collector.format.columns import MEMORY, PINNED, WORKERS
from memboard.tb_plugin.analysis.findings.host_growth import (
    GrowingProcess,
    HostRoom,
    growing_processes,
)
from memboard.tb_plugin.analysis.findings.text import size_text
from memboard.tb_plugin.analysis.series.growth import trend
from tests.builders import RunBuilder
from tests.errors_found import errors_in
from tests.oom_reports import add_report
from tests.tb_plugin.client import Page

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
STEPS = 200


def constant(_rng, steps):
    return np.full(len(steps), 20 * GIB)


def held_batches(rng, steps):
    return 20 * GIB + rng.integers(0, 64, len(steps)) * MIB


def evaluations(_rng, steps):
    return 20 * GIB + np.where(steps % 50 == 49, 3 * GIB, 0)


def filling_cache(rng, steps):
    return 20 * GIB - 4 * GIB * np.exp(-steps / rng.integers(2, 8))


def settling_process(rng, steps):
    """Resident memory of a process in its first steps: fast at first, in pages."""
    rises = GIB * (1 - np.exp(-steps / rng.integers(15, 70)))
    return 4 * GIB + np.floor(rises / (4 * MIB)) * 4 * MIB


def filled_for_a_while(rng, steps):
    """Caches that fill long after the warm-up, and what a process's pages come and go by."""
    rises = np.minimum(steps, rng.integers(30, 110)) * 20 * MIB
    return 4 * GIB + rises + rng.uniform(-MIB, MIB, len(steps))


def one_jump(rng, steps):
    return 20 * GIB + np.where(steps > rng.integers(20, 180), GIB, 0)


def sawtooth(rng, steps):
    return 20 * GIB + steps % rng.integers(5, 30) * 10 * MIB


@pytest.mark.parametrize(
    "clean",
    [
        constant,
        held_batches,
        evaluations,
        filling_cache,
        settling_process,
        filled_for_a_while,
        one_jump,
        sawtooth,
    ],
)
def test_at_most_one_clean_run_of_a_hundred_grows(clean):
    steps = np.arange(STEPS)
    grows = [
        trend(steps, clean(np.random.default_rng(seed), steps).astype(float)).is_steady
        for seed in range(100)
    ]
    assert sum(grows) <= 1


@pytest.mark.parametrize(
    ("per_step", "noise", "start"),
    [
        (KIB, 0, 0),
        (5 * MIB, 64 * MIB, 0),
        (5 * MIB, 64 * MIB, 60),
        (300 * MIB, GIB, 100),
    ],
)
def test_planted_growth_is_found(per_step, noise, start):
    steps = np.arange(STEPS)
    found = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        held = 20 * GIB + np.maximum(0, steps - start) * per_step
        found += trend(steps, held + rng.random(STEPS) * noise).is_steady
    assert found >= 49


def recorded(tmp_path, **ranks):
    """A run whose ranks hold so much more after each step, on devices of 80 GiB."""
    builder = RunBuilder(tmp_path)
    steps = np.arange(STEPS)
    for number, per_step in enumerate(ranks.values()):
        held = 30 * GIB + steps * per_step
        rank = builder.rank(number)
        rank.steps(steps, allocated_bytes=held, allocated_peak_bytes=held + 10 * GIB)
    page = Page(tmp_path)
    return page.of_run("/findings")["findings"]


def test_the_finding_says_the_pace_and_when_the_device_is_full(tmp_path):
    found = recorded(tmp_path, still=0, grows=5 * MIB, more=50 * MIB)
    (one,) = [finding for finding in found if finding["key"] == "growing_memory"]
    assert one["rank"] == 2
    assert one["severity"] == "warning"
    # 80 GiB less the 10 above the 30 at the start, 50 MiB at a time.
    left = (80 - 40) * GIB / (50 * MIB) - (STEPS - 1)
    # What it rose by is of the steps that are named: those behind the warm-up.
    rise = size_text((STEPS * 0.9 - 1) * 50 * MIB)
    assert one["sentence"].startswith(
        f"The device memory of rank 2 grows 50.0 MiB per step, {rise} over the last"
        f" {STEPS * 9 // 10} steps."
    )
    assert f"step {STEPS - 1 + round(left):,}" in one["sentence"]
    assert one["sentence"].endswith("Rank 1 grows, too.")
    assert "history=True" not in "".join(told["text"] for told in one["advice"])


def test_the_rise_is_of_the_rows_whatever_they_are_grouped_by():
    for num in range(40, 400, 7):
        steps = np.arange(num)
        found = trend(steps, np.minimum(steps, num // 2) * 3.0)
        start = num - found.num_steps
        assert found.rise <= 1.1 * (num // 2 - min(start, num // 2)) * 3.0


def ran_out_beside(tmp_path, held):
    """The verdict on an error of a run that held so much after each step."""
    rank = RunBuilder(tmp_path).rank(0, world_size=1)
    steps = np.arange(len(held))
    rank.steps(steps, allocated_bytes=held, allocated_peak_bytes=held + GIB)
    add_report(rank, step=len(held) - 1)
    rank.close(how="exception", step=len(held) - 1)
    (one,) = errors_in(Page(tmp_path).of_run("/findings"))
    return one


@pytest.mark.parametrize("share", [0.25, 0.35])
def test_memory_that_grew_only_at_first_did_not_fill_the_device(tmp_path, share):
    steps = np.arange(600)
    noise = np.random.default_rng(1).integers(-200 * MIB, 200 * MIB, len(steps))
    held = 55 * GIB + np.minimum(steps / (share * len(steps)), 1) * 15 * GIB + noise
    one = ran_out_beside(tmp_path, held.astype(np.int64))
    assert one["key"] == "really_full"
    assert "retain" not in " ".join(told["text"] for told in one["advice"])


def test_memory_that_grew_to_the_end_filled_the_device(tmp_path):
    held = 30 * GIB + np.arange(600) * 80 * MIB
    assert ran_out_beside(tmp_path, held)["key"] == "growth"


def test_what_is_used_up_already_is_not_forecast():
    room = HostRoom("n0", 0.0, 32.0 * GIB, 8.0 * MIB, 1)
    one = GrowingProcess(0, 8.0 * MIB, 2.0 * GIB, 270, 299, 4.0 * GIB, room)
    finding = growing_processes([one], workers=False)
    assert finding is not None
    assert finding.sentence.endswith(
        "By now nothing is left of the control group's 32.0 GiB."
    )


def test_no_pinned_memory_is_suspected_without_a_device(tmp_path):
    steps = np.arange(STEPS)
    rank = RunBuilder(tmp_path).rank(0, device_type="cpu", device_total_bytes=None)
    rank.steps(steps, rss_bytes=4 * GIB + 20 * MIB * steps)
    rank.close()
    found = Page(tmp_path).of_run("/findings")["findings"]
    (one,) = (finding for finding in found if finding["key"] == "growing_host")
    assert "pinned" not in advice_on(one)


def test_a_growing_host_and_growing_workers_are_found_beside_a_steady_device(tmp_path):
    builder, steps = RunBuilder(tmp_path), np.arange(STEPS)
    for number, (own, workers) in enumerate(
        ((0, 0), (20 * MIB, 0), (8 * MIB, 9 * MIB))
    ):
        builder.rank(number).steps(
            steps,
            allocated_bytes=30 * GIB + 0 * steps,
            allocated_peak_bytes=40 * GIB + 0 * steps,
            rss_bytes=4 * GIB + own * steps,
            workers_rss_bytes=2 * GIB + workers * steps,
        )
    found = Page(tmp_path).of_run("/findings")["findings"]
    keys = {one["key"]: one for one in found}
    assert "growing_memory" not in keys
    host, of_workers = keys["growing_host"], keys["growing_workers"]
    assert (host["rank"], of_workers["rank"]) == (1, 2)
    assert host["sentence"].startswith(
        "The process of rank 1 grows 20.0 MiB of host memory"
    )
    assert host["sentence"].endswith("On 1 more rank, it grows as well.")
    assert "workers of rank 2 grow 9.00 MiB" in of_workers["sentence"]
    assert host["place"]["page"] == "timeline"


def processes_that_grow(tmp_path, held):
    """Ranks of which a run without a device says that their processes grow."""
    builder = RunBuilder(tmp_path)
    for number, values in enumerate(held):
        builder.rank(number).steps(np.arange(len(values)), rss_bytes=values.astype(int))
    found = Page(tmp_path).of_run("/findings")["findings"]
    return [one["rank"] for one in found if one["key"] == "growing_host"]


def test_a_process_that_starts_is_no_leak(tmp_path):
    held = [
        settling_process(np.random.default_rng(seed), np.arange(20 + seed))
        for seed in range(60)
    ]
    assert processes_that_grow(tmp_path, held) == []


def test_a_process_that_doubles_while_it_starts_is_one(tmp_path):
    held = [GIB + 40 * MIB * np.arange(40)]
    assert processes_that_grow(tmp_path, held) == [0]


def shared_host(tmp_path, *, available, limit=None, used=None, hosts="aa", **beside):
    """Ranks that each keep 20 MiB per step; the first of a host records its memory.

    `available`, `used`: of the host's memory and of its limit, after the last step.
    """
    builder, steps = RunBuilder(tmp_path), np.arange(STEPS)
    for number, host in enumerate(hosts):
        rank = builder.rank(number, host=host, memory_limit_bytes=limit)
        rank.steps(steps, rss_bytes=4 * GIB + 20 * MIB * steps)
        for table, (columns, values) in beside.items():
            held = {name: np.broadcast_to(of, STEPS) for name, of in values.items()}
            rank.rows(table, steps, extra=columns, **held)
        if hosts.index(host) != number or available is None:
            continue
        pace = 20 * MIB * hosts.count(host) * (STEPS - 1 - steps)
        memory = {"memory_available_bytes": available + pace}
        if used is not None:
            memory["memory_limit_used_bytes"] = used - pace
        rank.rows("memory", steps, extra=MEMORY, **memory)
        rank.close()
    found = Page(tmp_path).of_run("/findings")["findings"]
    (one,) = [one for one in found if one["key"] == "growing_host"]
    return one


def steps_left(one):
    """Of the forecast, which rests on the last samples: a step or two apart."""
    assert one["sentence"].endswith("after the last recorded one.")
    (step, left) = re.search(
        r"about step ([\d,]+), ([\d,]+) steps", one["sentence"]
    ).groups()
    left = int(left.replace(",", ""))
    assert int(step.replace(",", "")) == STEPS - 1 + left
    return left


def test_the_forecast_counts_what_is_left_and_all_ranks_of_the_host(tmp_path):
    # Of 512 GiB the machine has 10 left, which two ranks take 40 MiB at a time.
    one = shared_host(tmp_path, available=10 * GIB)
    assert steps_left(one) == pytest.approx(10 * GIB / (40 * MIB), abs=2)
    assert "2 ranks on a" in one["sentence"]
    assert "40.0 MiB per step" in one["sentence"]
    assert "the 10.0 GiB that is left of the host's memory" in one["sentence"]


def test_a_limit_of_which_less_is_left_than_of_the_machine_comes_first(tmp_path):
    one = shared_host(
        tmp_path, available=300 * GIB, limit=64 * GIB, used=60 * GIB, hosts="a"
    )
    assert (
        "the 4.00 GiB that is left of the control group's 64.0 GiB" in one["sentence"]
    )
    assert steps_left(one) == pytest.approx(4 * GIB / (20 * MIB), abs=2)
    assert "together" not in one["sentence"]


def test_a_machine_that_is_nearly_full_comes_before_a_limit_with_room(tmp_path):
    one = shared_host(
        tmp_path, available=2 * GIB, limit=64 * GIB, used=40 * GIB, hosts="a"
    )
    assert "GiB that is left of the host's memory" in one["sentence"]
    assert steps_left(one) == pytest.approx(2 * GIB / (20 * MIB), abs=2)


def test_ranks_of_other_hosts_take_nothing_of_it(tmp_path):
    one = shared_host(tmp_path, available=10 * GIB, hosts="ab")
    assert steps_left(one) == pytest.approx(10 * GIB / (20 * MIB), abs=2)


@pytest.mark.parametrize(
    ("available", "limit"), [(None, None), (None, 64 * GIB), (300 * GIB, 64 * GIB)]
)
def test_no_forecast_where_what_is_left_was_not_recorded(tmp_path, available, limit):
    one = shared_host(tmp_path, available=available, limit=limit)
    assert "will be used up" not in one["sentence"]
    assert one["severity"] == "warning"


def advice_on(one):
    return " ".join(advice["text"] for advice in one["advice"])


def test_advice_on_host_memory_names_its_sources_and_a_tool(tmp_path):
    text = advice_on(shared_host(tmp_path, available=10 * GIB))
    for word in ("Python objects", "tracemalloc", "memray"):
        assert word in text
    # What was not recorded is named with its condition.
    assert "If the program pins memory" in text
    assert "If dataloaders have workers" in text
    # That is advice on a device's memory.
    assert ".item()" not in text
    assert "copies on the host" not in text
    assert "history=True" not in text


def test_workers_and_pinned_memory_that_stay_the_same_are_not_suspected(tmp_path):
    workers = {"num_workers": 4, "workers_rss_bytes": 8 * GIB}
    pinned = {"pinned_reserved_bytes": 2 * GIB}
    text = advice_on(
        shared_host(
            tmp_path,
            available=10 * GIB,
            workers=(WORKERS, workers),
            pinned=(PINNED, pinned),
        )
    )
    assert "tracemalloc" in text
    assert "pin" not in text
    assert "worker" not in text


def test_pinned_memory_that_grows_as_well_leads_the_advice(tmp_path):
    pinned = {"pinned_reserved_bytes": GIB + 16 * MIB * np.arange(STEPS)}
    one = shared_host(tmp_path, available=10 * GIB, pinned=(PINNED, pinned))
    assert one["advice"][0]["text"].startswith("Pinned memory grows")
    assert one["advice"][0]["gain"] == pytest.approx(16 * MIB * STEPS, rel=0.2)
