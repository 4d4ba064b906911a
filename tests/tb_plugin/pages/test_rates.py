"""Throughput and MFU of steps: against what was done, by the time that it took."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.tb_plugin.pages.steps.rate_words import rate_text
from tests.builders import RunBuilder
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.test_steps import story
from tests.tb_plugin.step_runs import CONFIG, MS, Story


def test_throughput_is_what_was_done_by_the_time_it_took(tmp_path):
    told = Story(4, 100, noise=0.2).tell()
    page = story(tmp_path, told, counters={"samples": 8, "tokens": 4096}, flops=2e12)
    found = page.of_run("/steps", "exp")
    rates = {rate["key"]: rate for rate in found["rates"]}
    seconds = np.array(told.total) * MS
    np.testing.assert_allclose(
        rates["steps"]["values"][1:], 1 / seconds[0, 1:], rtol=1e-4
    )
    np.testing.assert_allclose(
        rates["tokens"]["values"][1:], 4096 / seconds[0, 1:], rtol=1e-4
    )
    together = (8 / seconds).sum(axis=0)
    np.testing.assert_allclose(rates["samples"]["summed"][1:], together[1:], rtol=1e-4)
    assert len(rates["steps"]["summed"]) == 0
    assert found["num_summed"] == 4
    assert "mfu" not in rates
    assert "device_peak" in found["flops"]["missing"]


def test_mfu_is_operations_per_second_by_what_the_device_could_do(tmp_path):
    told = Story(3, 60).tell()
    config = {**CONFIG, "flops": {"per_step": 2e12, "device_peak": 1e14}}
    found = story(tmp_path, told, flops=2e12, config=config).of_run("/steps", "exp")
    rates = {rate["key"]: rate for rate in found["rates"]}
    seconds = np.array(told.total) * MS
    expected = 100 * 2e12 / seconds[0, 1:] / 1e14
    np.testing.assert_allclose(rates["mfu"]["values"][1:], expected, rtol=1e-4)
    mean = (100 * 2e12 / seconds / 1e14).mean(axis=0)
    np.testing.assert_allclose(rates["mfu"]["summed"][1:], mean[1:], rtol=1e-4)
    assert found["flops"]["origin"] == "settings"
    assert found["flops"]["missing"] == ""


def test_flops_of_a_trace_stand_in(tmp_path):
    run = RunBuilder(tmp_path / "exp")
    file = run.rank(config={"flops": {"device_peak": 1e14}})
    file.steps(range(40), step_time_seconds=[1.0] * 40)
    meta = {"flops": 6e13, "num_steps": 3}
    file.capture("trace", meta=meta)
    file.close()
    found = Page(tmp_path).of_run("/steps", "exp")
    assert found["flops"]["origin"] == "trace"
    assert found["flops"]["per_step"] == 2e13
    (mfu,) = [rate for rate in found["rates"] if rate["key"] == "mfu"]
    np.testing.assert_allclose(mfu["values"][1:], 20.0, rtol=1e-6)


def test_a_rate_reads_short_with_its_unit():
    assert rate_text(6.791, "steps") == "6.79 steps/s"
    assert rate_text(1_772_000, "tokens") == "1.77 Mtokens/s"
    assert rate_text(40.76e12, "flops") == "40.8 TFLOP/s"
    assert rate_text(40.8, "mfu") == "40.8 %"
    assert rate_text(None, "mfu") == "–"  # noqa: RUF001


def test_rates_say_what_mfu_is_based_on(tmp_path):
    told = Story(3, 60).tell()
    config = {**CONFIG, "flops": {"per_step": 2e12, "device_peak": 1e14}}
    found = story(tmp_path, told, flops=2e12, config=config).of_run("/steps", "exp")
    assert [one["key"] for one in found["rates"]] == ["mfu", "steps", "flops"]
    mfu, steps, _ = found["rates"]
    assert "÷ device_peak" in mfu["help"]
    assert "2.00 TFLOP per step" in mfu["help"]
    assert mfu["text"].startswith("MFU ")
    assert "Mean of 3 ranks; rank 0: " in mfu["hint"]
    assert (steps["title"], found["grain"]) == (
        "Steps/s, with pauses",
        "Every step is drawn.",
    )


def test_rates_say_what_mfu_lacks(tmp_path):
    found = story(tmp_path, Story(1, 30).tell()).of_run("/steps", "exp")
    (steps,) = found["rates"]
    assert "MFU is not known without the operations of a step" in steps["help"]


@pytest.mark.parametrize(
    "settings",
    [
        {"device_peak": "fast"},
        {"device_peak": -1},
        {"device_peak": True},
        [],
        "x",
        None,
    ],
    ids=str,
)
def test_settings_of_the_wrong_kind_are_none(tmp_path, settings):
    told = Story(1, 30).tell()
    found = story(tmp_path, told, flops=2e12, config={"flops": settings, "spans": 3})
    answer = found.of_run("/steps", "exp")
    assert answer["flops"]["device_peak"] is None
    assert "mfu" not in {rate["key"] for rate in answer["rates"]}
