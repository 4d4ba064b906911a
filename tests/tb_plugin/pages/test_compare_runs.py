"""`/compare_runs`: two runs, or ranks, of which the difference is known by construction."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.collector.format.columns import Column
from tests.builders import GIB, RunBuilder
from tests.tb_plugin.analysis.module_logs import LogBuilder
from tests.tb_plugin.client import Page, numbers_of
from tests.tb_plugin.pages.module_runs import META, record

SAMPLES = Column(name="samples", unit="count", group="progress", kind="counter")
STEPS = np.arange(60)
SHOWN = {
    "peak_allocated": "Peak",
    "peak_reserved": "Reserved peak",
    "growth": "Growth per step",
}


def a_run(folder, *, peaks=(10.0,), seconds=0.5, grow=0, batch=None, **more) -> None:
    run = RunBuilder(folder)
    for number, peak in enumerate(peaks):
        rank = run.rank(number, world_size=len(peaks))
        held = peak * GIB + grow * STEPS
        columns = {
            "allocated_peak_bytes": held,
            "reserved_peak_bytes": held + GIB,
            "step_time_seconds": 0 * STEPS + seconds,
            **{name: column + 0 * STEPS for name, column in more.items()},
        }
        if batch is not None:
            columns["samples"] = batch * (STEPS + 1)
        rank.steps(STEPS, extra=(SAMPLES,), **columns)
        rank.close()


def compared(page, a="exp-1", b="exp-2", **query):
    ids = {"run": page.run_id(a), "b_run": page.run_id(b)}
    found = page.get("/compare_runs", **ids, **query)
    return found, figures_in(found)


def figures_in(found):
    """Of both sides by label; None: not known."""
    name, a, b, *_ = found["figures"]["columns"]
    rows = zip(name["texts"], a["numbers"], b["numbers"], name["notes"], strict=True)
    return {
        label: {
            "a": None if np.isnan(of_a) else of_a,
            "b": None if np.isnan(of_b) else of_b,
            "note": note,
            "hint": hint,
        }
        for (label, of_a, of_b, note), hint in zip(rows, name["hints"], strict=True)
    }


def test_two_runs_with_nothing_but_steps_differ_by_what_was_planted(tmp_path):
    a_run(tmp_path / "exp-1", peaks=(30, 36, 40), seconds=0.5, batch=8)
    a_run(tmp_path / "exp-2", peaks=(30, 31, 36), seconds=0.6, grow=1000, batch=4)
    page = Page(tmp_path)
    found, figures = compared(page)
    assert found["sentence"] == (
        "This run peaks 4.00 GiB lower than exp-1 (36.0 GiB against 40.0 GiB, rank 2);"
        " a step takes 20 % longer (600 ms against 500 ms)."
    )
    assert list(figures) == [
        "Peak",
        "Reserved peak",
        "Growth per step",
        "Step time (median)",
        "Samples per second",
    ]
    peak, growth = figures["Peak"], figures["Growth per step"]
    assert (peak["a"], peak["b"]) == (40 * GIB, 36 * GIB + 59_000)
    assert peak["note"] == "· rank 2"
    assert (growth["a"], growth["b"]) == (0, pytest.approx(1000))
    time = figures["Step time (median)"]
    assert (time["a"], time["b"]) == pytest.approx((0.5, 0.6))
    # A row a second, three ranks.
    samples = figures["Samples per second"]
    assert (samples["a"], samples["b"], samples["note"]) == (24, 12, "")
    assert samples["hint"] == "Median over the steps, of all ranks together"
    assert found["tables"] == []
    assert not found["still_reading"]


def test_its_numbers_are_those_of_the_overview_and_of_the_steps(tmp_path):
    for name, peak in (("exp-1", 10), ("exp-2", 12)):
        a_run(tmp_path / name, peaks=(peak, peak + 1), grow=5000, batch=8)
    page = Page(tmp_path)
    _, figures = compared(page)
    for side, name in (("a", "exp-1"), ("b", "exp-2")):
        headlines = page.of_run("/overview", name)["headlines"]
        shown = {one["key"]: (one["value"], one["rank"]) for one in headlines}
        for key, label in SHOWN.items():
            value, rank = shown[key]
            assert figures[label][side] == value
            assert figures[label]["note"] == f"· rank {rank}"
        rates = page.of_run("/steps", name)["rates"]
        (samples,) = (one for one in rates if one["key"] == "samples")
        assert figures["Samples per second"][side] == samples["summed_median"]


def test_what_one_side_did_not_record_is_unknown_and_never_zero(tmp_path):
    a_run(tmp_path / "exp-1", rss_bytes=GIB)
    run = RunBuilder(tmp_path / "exp-2")
    rank = run.rank(0, world_size=1)
    rank.steps(STEPS, rss_bytes=2 * GIB + 0 * STEPS)
    rank.close()
    found, figures = compared(Page(tmp_path))
    assert figures["Peak"]["b"] is None
    assert figures["Growth per step"]["b"] is None
    assert figures["RSS growth per step"]["a"] is None
    assert found["sentence"] == (
        "The resident memory of this run peaks 1.00 GiB higher than that of exp-1"
        " (2.00 GiB against 1.00 GiB)."
    )


def test_two_ranks_of_one_run(tmp_path):
    a_run(tmp_path / "exp-1", peaks=(10, 14))
    found, figures = compared(Page(tmp_path), b="exp-1", rank=0, b_rank=1)
    assert found["sentence"] == (
        "Rank 1 peaks 4.00 GiB higher than rank 0 (14.0 GiB against 10.0 GiB)."
    )
    assert figures["Peak"]["note"] == ""


def test_an_error_for_want_of_memory_is_counted_where_either_has_one(tmp_path):
    a_run(tmp_path / "exp-1", num_ooms=1)
    a_run(tmp_path / "exp-2", num_ooms=0)
    _, figures = compared(Page(tmp_path))
    ooms = figures["Out-of-memory errors"]
    assert (ooms["a"], ooms["b"]) == (1, 0)


def test_a_rank_that_is_not_there_is_named(tmp_path):
    a_run(tmp_path / "exp-1")
    page = Page(tmp_path)
    answer = page.raw("/compare_runs", run=page.run_id("exp-1"), rank=7)
    assert answer.status_code == 404
    assert b"rank=7" in answer.data


def numbers(table, key):
    return next(one for one in table["rows"]["columns"] if one["key"] == key)["numbers"]


def layers(batch: int) -> LogBuilder:
    """Three equal layers, each with its activations, and an optimizer."""
    log = LogBuilder()
    root = log.module("Net")
    log.at(root, "before_pre_forward")
    for number in range(3):
        log.alloc(batch, "activation", log.module(f"Net.layers.{number}", root))
        log.tick()
    log.at(root, "after_post_forward")
    log.alloc(500, "optimizer", -1)
    log.tick()
    return log


def test_tracked_steps_say_which_category_and_modules(tmp_path):
    for name, batch in (("exp-1", 900), ("exp-2", 400)):
        peak = 10_000 + batch
        record(RunBuilder(tmp_path / name), logs=(layers(batch),), peak=peak)
    page = Page(tmp_path)
    found, _ = compared(page)
    tables = {one["by"]: one for one in found["tables"]}
    for side, name in (("a", "exp-1"), ("b", "exp-2")):
        window = page.of_run("/modules", name, state="window_peak")
        total = window["split"]["total_bytes"]
        for table in tables.values():
            assert numbers(table, f"{side}_bytes").sum() == total
    category = tables["category"]
    change = np.abs(numbers(category, "difference_bytes"))
    assert (np.diff(change) <= 0).all()
    for by, label in (("category", "activation"), ("module", "Net.layers.*")):
        assert tables[by]["rows"]["columns"][0]["texts"][0] == label
        held = [numbers(tables[by], f"{side}_bytes")[0] for side in "ab"]
        assert held == [3 * 900, 3 * 400]
    assert found["tables_of"] == "step 2, rank 0"
    figures = found["moment_figures"]
    assert figures["title"] == "At the peak of step 2, rank 0"
    for side in "ab":
        for table in tables.values():
            sizes = numbers(table, f"{side}_bytes")
            assert np.nansum(sizes) == numbers_of(figures, side)[0]
    assert found["sentence"] == (
        "This run peaks 500 B lower than exp-1 (10.2 KiB against 10.6 KiB):"
        " mostly activations of Net.layers.* (1.46 KiB less, 56 %)."
    )


def test_what_one_side_tracked_is_shown_beside_what_is_unknown(tmp_path):
    record(RunBuilder(tmp_path / "exp-1"), logs=(layers(900),))
    a_run(tmp_path / "exp-2")
    found, _ = compared(Page(tmp_path))
    (category, _) = found["tables"]
    keys = [one["key"] for one in category["rows"]["columns"]]
    assert keys == ["category", "a_bytes"], "there is no difference from the unknown"
    assert numbers(category, "a_bytes").tolist() == [3 * 900, 500]
    assert found["tables_of"] == "A: step 2, rank 0"
    assert "mostly" not in found["sentence"]


def test_a_thousand_ranks_are_compared(tmp_path):
    for name in ("exp-1", "exp-2"):
        RunBuilder(tmp_path / name).simple(1000, 20)
    page = Page(tmp_path)
    while compared(page)[0]["still_reading"]:
        pass  # every file is opened once, for any page
    found, figures = compared(page)
    assert figures["Peak"]["note"] == "· rank 999"
    assert found["a"]["num_ranks"] == 1000


MIB = 1 << 20


def trained(folder, *, device, activations=60, optimizer=30, seconds=0.5, seed=0):
    """A run whose noise is its seed's, with one tracked step; sizes in MiB."""
    noise = np.random.default_rng(seed)
    log = LogBuilder()
    root = log.module("Net")
    log.at(root, "before_pre_forward")
    log.alloc(activations * MIB, "activation", log.module("Net.layer", root))
    log.tick()
    log.at(root, "after_post_forward")
    log.alloc(optimizer * MIB, "optimizer", -1)
    log.tick()
    rank = RunBuilder(folder).rank(0, world_size=1)
    # A process starts a little larger or smaller each time, whatever it trains.
    rss = (480 + 4 * noise.random() + noise.random(len(STEPS))) * MIB
    columns = {
        "step_time_seconds": seconds * (1 + 0.06 * noise.standard_normal(len(STEPS))),
        "rss_bytes": np.floor(rss),
    }
    if device:
        peak = (activations + optimizer + noise.random(len(STEPS))) * MIB
        columns["allocated_peak_bytes"] = np.floor(peak)
    rank.steps(STEPS, **columns)
    rank.capture(
        tables=log.tables(),
        meta=META,
        step=5,
        iteration=5,
        time_ns=1_780_000_100_000_000_000,
    )
    rank.close()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("device", [False, True])
def test_noise_is_no_difference(tmp_path, device, seed):
    for number in (1, 2):
        trained(tmp_path / f"exp-{number}", device=device, seed=10 * seed + number)
    sentence = compared(Page(tmp_path))[0]["sentence"]
    assert "about as high as" in sentence
    assert not any(word in sentence for word in ("mostly", "a step takes", "resident"))


@pytest.mark.parametrize("device", [False, True])
@pytest.mark.parametrize(
    ("changed", "noun"),
    [({"activations": 29}, "activations"), ({"optimizer": 10}, "optimizer states")],
)
def test_the_memory_that_was_changed_leads_and_what_it_costs(
    tmp_path, device, changed, noun
):
    trained(tmp_path / "exp-1", device=device, seed=1)
    trained(tmp_path / "exp-2", device=device, seed=2, seconds=0.66, **changed)
    sentence = compared(Page(tmp_path))[0]["sentence"]
    subject = "This run peaks " if device else "Tensors of this run peak "
    assert sentence.startswith(subject)
    less = {
        "activations": "31.0 MiB less, 52 %",
        "optimizer states": "20.0 MiB less, 67 %",
    }
    assert " lower than " in sentence
    assert f"mostly {noun}" in sentence
    assert less[noun] in sentence
    assert "% longer" in sentence
    assert "resident" not in sentence
