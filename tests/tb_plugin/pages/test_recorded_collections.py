"""What the garbage collector did in the steps: in verdicts, and on steps that are slow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from memboard.collector.format.columns import GARBAGE, Column
from tests.builders import RunBuilder
from tests.errors_found import errors_in
from tests.oom_reports import add_report
from tests.tb_plugin.analysis.made_programs import GIB, MIB, Training
from tests.tb_plugin.analysis.test_reference_cycles import (
    Process,
    cleared_cache,
    leaks,
)
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.test_verdict_of_programs import advice, verdict_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builders import RankBuilder


def large_cycles(process: Process, step: int) -> None:
    leaks(process, step, 600)
    process.step()


def small_cycles(process: Process, step: int) -> None:
    leaks(process, step, 8)
    process.step()


def cycles_beside_a_list(process: Process, step: int) -> None:
    process.held += 120 * MIB
    leaks(process, step, 80)
    process.step()


def played(program: Any, num_steps: int = 460, base: int = 2 * GIB) -> np.ndarray:
    """Rows of steps: memory, and the counts of the collector."""
    process = Process(1, base=base)
    for step in range(num_steps):
        program(process, step)
    return np.array(process.rows, np.int64)


def write(rank: RankBuilder, rows: np.ndarray, *, counted: bool = True) -> None:
    held, partial, full, objects = rows.T
    counts: dict[str, Any] = {
        "gc_partial_collections": partial,
        "gc_full_collections": full,
        "gc_collected_objects": objects,
    }
    rank.steps(
        range(len(rows)),
        extra=GARBAGE if counted else (),
        allocated_bytes=held,
        allocated_peak_bytes=held + GIB,
        **(counts if counted else {}),
    )


def errors_and_cycles(folder: Path) -> tuple[list[dict[str, Any]], list[str]]:
    found = Page(folder).of_run("/findings")
    own = [f for f in found["findings"] if f["key"] == "reference_cycles"]
    return errors_in(found), [one["sentence"] for one in own]


def quoted(sentence: str) -> str:
    """What the finding says, from its verb on."""
    return sentence[sentence.index("rises from step") :]


def test_cycles_that_hold_most_are_the_verdict(tmp_path):
    rank = RunBuilder(tmp_path).rank(0)
    rows = played(large_cycles)
    write(rank, rows)
    add_report(rank, step=len(rows))
    rank.close(how="exception")
    (one,), (said,) = errors_and_cycles(tmp_path)
    assert one["key"] == "uncollected_cycles"
    assert quoted(said) in one["sentence"]
    fell = int(np.flatnonzero(np.diff(rows[:, 0]) < 0)[-1]) + 1
    evidence = {e["key"]: e["value"] for e in one["evidence"]}
    assert evidence["cycles"] == rows[-1, 0] - rows[fell, 0]
    assert "Break the cycles" in advice(one)
    assert "gc.collect() every few steps" in advice(one)
    assert ".item()" not in advice(one)


def test_cycles_of_host_memory_are_named_beside_a_device_that_stays_as_it_is(tmp_path):
    rows = played(large_cycles)
    held, partial, full, objects = rows.T
    rank = RunBuilder(tmp_path).rank(0, world_size=1)
    rank.steps(
        range(len(rows)),
        extra=GARBAGE,
        allocated_bytes=np.full(len(rows), 20 * GIB),
        rss_bytes=held,
        gc_partial_collections=partial,
        gc_full_collections=full,
        gc_collected_objects=objects,
    )
    rank.close()
    (sentence,) = errors_and_cycles(tmp_path)[1]
    assert sentence.startswith("The host memory of rank 0 rises from step to step")


def test_cycles_that_hold_little_are_named_beside_the_verdict(tmp_path):
    rank = RunBuilder(tmp_path).rank(0)
    write(rank, played(small_cycles))
    add_report(rank, step=460)
    rank.close(how="exception")
    (one,), (said,) = errors_and_cycles(tmp_path)
    assert one["key"] == "really_full"
    assert quoted(said) in one["sentence"]
    assert "uncollected_cycles" in one["also"]
    assert "Break the cycles" in advice(one)


def test_a_list_that_grows_faster_than_cycles_is_the_verdict(tmp_path):
    rank = RunBuilder(tmp_path).rank(0)
    write(rank, played(cycles_beside_a_list))
    add_report(rank, step=460)
    rank.close(how="exception")
    (one,), (said,) = errors_and_cycles(tmp_path)
    assert one["key"] == "growth"
    assert "uncollected_cycles" in one["also"]
    assert quoted(said) in one["sentence"]


@pytest.mark.parametrize(
    ("program", "counted"), [(cleared_cache, True), (large_cycles, False)]
)
def test_nothing_is_said_of_cycles_that_were_not_recorded(tmp_path, program, counted):
    rank = RunBuilder(tmp_path).rank(0)
    write(rank, played(program), counted=counted)
    add_report(rank, step=460)
    rank.close(how="exception")
    (one,), said = errors_and_cycles(tmp_path)
    assert said == []
    assert "reference cycles" not in one["sentence"]
    assert "uncollected_cycles" not in one["also"]
    assert "Break the cycles" not in advice(one)


def test_cycles_of_another_rank_or_start_are_not_those_of_the_error(tmp_path):
    builder = RunBuilder(tmp_path)
    for attempt, programs in enumerate(
        ((large_cycles, large_cycles), (cleared_cache, large_cycles))
    ):
        for number, program in enumerate(programs):
            rank = builder.rank(number, attempt=attempt)
            write(rank, played(program))
            if (attempt, number) == (1, 0):
                add_report(rank, step=460)
            rank.close(how="exception")
    (one,), said = errors_and_cycles(tmp_path)
    assert one["rank"] == 0
    assert "of rank 1" in said[0]
    assert "reference cycles" not in one["sentence"]


# Growth without a history, and with one alone.


def grown(folder: Path, *, full_runs: int | None, **header: Any) -> dict[str, Any]:
    rank = RunBuilder(folder).rank(0, **header)
    steps = np.arange(200)
    held = 30 * GIB + steps * 50 * MIB
    counts: dict[str, Any] = {}
    if full_runs is not None:
        counts = {
            "gc_partial_collections": steps,
            "gc_full_collections": steps * full_runs // 199,
            "gc_collected_objects": 0 * steps,
        }
    rank.steps(
        steps,
        extra=GARBAGE if counts else (),
        allocated_bytes=held,
        allocated_peak_bytes=held + 10 * GIB,
        **counts,
    )
    found = Page(folder).of_run("/findings")["findings"]
    (one,) = [finding for finding in found if finding["key"] == "growing_memory"]
    return one


@pytest.mark.parametrize("full_runs", [None, 0, 40])
@pytest.mark.parametrize("enabled", [False, True])
def test_growth_without_a_history_says_what_to_record(tmp_path, full_runs, enabled):
    config = {"history": {"enabled": enabled}}
    one = grown(tmp_path, full_runs=full_runs, config=config)
    said = advice(one)
    assert ".item()" not in said
    assert "list or cache" not in said
    assert "To see which line retains it" in said
    assert ("record the allocator's history: history=True" in said) != enabled
    # Only what the collector did not do, or was not seen doing, is worth a call.
    assert ("gc.collect()" in said) == (full_runs != 40)
    assert ("was not recorded" in said) == (full_runs is None)


def test_an_error_that_growth_filled_without_a_history_says_what_to_record(tmp_path):
    rank = RunBuilder(tmp_path).rank(
        0, config={"history": {"enabled": False}, "oom": {"history": False}}
    )
    steps = np.arange(300)
    held = 10 * GIB + steps * 200 * MIB
    rank.steps(steps, allocated_bytes=held, allocated_peak_bytes=held + 2 * GIB)
    add_report(rank, step=300)
    rank.close(how="exception")
    (one,), _ = errors_and_cycles(tmp_path)
    assert one["key"] == "growth"
    assert ".item()" not in advice(one)
    assert "To see which line retains it" in advice(one)
    assert "if that ends the growth, reference cycles hold the memory" in advice(one)


def test_a_pickle_alone_names_an_experiment_and_claims_no_cycles(tmp_path):
    training = Training(weight=64 * MIB)
    for _ in range(30):
        training.step(16 * MIB)
        training.alloc(GIB, [])
    one = verdict_of(tmp_path, training, size=2 * GIB, device_free=GIB)
    assert one["key"] == "growth"
    assert "cycle" not in one["sentence"]
    assert ".item()" not in advice(one)
    assert 'stacks="all"' in advice(one)
    (told,) = [a["text"] for a in one["advice"] if "cycles" in a["text"]]
    assert "Call gc.collect() every few steps once: if that ends the growth" in told


# Steps that are slow when the collector runs.

TIMES = (
    Column(name="forward_seconds", unit="seconds", group="timing", dtype="f4", headline=True),
)  # fmt: skip


def slow_steps(folder: Path, *, runs_every: int | None, cycles: bool) -> dict[str, Any]:
    """Every 40th step takes three times as long; a full collection runs in some steps."""
    num = 480
    steps = np.arange(num)
    seconds = np.where(steps % 40 == 39, 0.3, 0.1)
    counts: dict[str, Any] = {}
    held = np.full(num, 20 * GIB)
    if runs_every is not None:
        runs = (steps + 1) // runs_every
        counts = {
            "gc_partial_collections": steps * 200,
            "gc_full_collections": runs,
            "gc_collected_objects": runs * 4000,
        }
        if cycles:
            held = held + (steps + 1) % runs_every * 64 * MIB
    rank = RunBuilder(folder).rank(0)
    rank.steps(
        steps,
        extra=(*TIMES, *(GARBAGE if counts else ())),
        step_time_seconds=seconds,
        forward_seconds=np.full(num, 0.05),
        allocated_bytes=held,
        allocated_peak_bytes=held + GIB,
        **counts,
    )
    found = Page(folder).of_run("/findings")["findings"]
    (one,) = [finding for finding in found if finding["key"] == "slow_every_n"]
    return one


def test_full_collections_that_free_nothing_may_be_switched_off(tmp_path):
    one = slow_steps(tmp_path, runs_every=40, cycles=False)
    assert "garbage collector makes a full run in it" in one["sentence"]
    assert "gc.freeze()" in advice(one)
    assert "logging" not in advice(one)


def test_collections_that_cycles_need_are_not_switched_off(tmp_path):
    one = slow_steps(tmp_path, runs_every=40, cycles=True)
    assert "break them" in advice(one)
    assert "gc.freeze" not in advice(one)
    assert "gc.disable" not in advice(one)


@pytest.mark.parametrize("runs_every", [7, 480])
def test_collections_in_other_steps_are_no_cause(tmp_path, runs_every):
    one = slow_steps(tmp_path, runs_every=runs_every, cycles=False)
    assert "garbage" not in one["sentence"]
    assert "gc." not in advice(one)
    assert "logging" in advice(one)


def test_collections_that_were_not_recorded_are_named_with_their_condition(tmp_path):
    one = slow_steps(tmp_path, runs_every=None, cycles=False)
    assert "garbage" not in one["sentence"]
    assert "If gc.get_stats() counts a full collection in these steps" in advice(one)
    assert "gc.freeze" not in advice(one)
