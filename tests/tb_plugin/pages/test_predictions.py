"""Overview and report of a run on a virtual GPU that was predicted."""

from __future__ import annotations

import json

import pytest

from memboard.collector.format.prediction import (
    NOTE,
    DeviceFigures,
    Estimate,
    Prediction,
)
from memboard.tb_plugin.cli import main
from memboard.tb_plugin.facts.overview.headline_words import CAVEATS
from tests.builders import GIB
from tests.tb_plugin.client import Page

MIB = 1 << 20
CONTEXT = Estimate("CUDA context and kernels", 450 * MIB, 750 * MIB, "what it shows")
LABEL = "virtual H100 80GB"


def prediction(reserved: int, ended="stopped", **more) -> Prediction:
    figures = DeviceFigures(
        index=0,
        allocated_peak=reserved,
        active_peak=reserved,
        reserved_peak=reserved,
        num_alloc_retries=0,
        num_ooms=0,
    )
    return Prediction(
        capacity=80 * GIB,
        estimates=(CONTEXT,),
        ended=ended,
        devices=(figures,),
        **more,
    )


BEGUN = Prediction(capacity=80 * GIB, estimates=(CONTEXT,))


def recorded(run, number, *predictions, virtual=LABEL, **header):
    rank = run.rank(number, world_size=2, virtual_gpu=virtual, **header)
    for one in predictions:
        rank.note(NOTE, **one.to_note())
    rank.steps(
        range(3),
        allocated_peak_bytes=[10 * GIB] * 3,
        reserved_peak_bytes=[12 * GIB] * 3,
        reserved_bytes=[12 * GIB] * 3,
    )
    rank.rows("device_free", range(3), device_used_bytes=[12 * GIB] * 3)
    rank.close()


def overview(logdir, **query):
    found = Page(logdir).of_run("/overview", "exp", **query)
    return found, {one["key"]: one for one in found["headlines"]}


def ends(row: dict) -> tuple[float | None, float | None]:
    return row["low_bytes"], row["high_bytes"]


def test_the_ledger_has_the_estimates_as_ranges_and_the_total(run, tmp_path):
    recorded(run, 0, BEGUN, prediction(12 * GIB))
    found, headlines = overview(tmp_path)
    ledger = found["prediction"]
    assert ledger["fit"] == "fits"
    (sentence,) = ledger["sentences"]
    assert sentence.endswith("leave 67.27 GiB free")
    assert [(row["label"], row["mark"]) for row in ledger["rows"]] == [
        ("Peak reserved", ""),
        (CONTEXT.name, "estimated"),
        ("Needed", "estimated"),
    ]
    reserved, estimate, needed = map(ends, ledger["rows"])
    assert reserved == (12 * GIB, 12 * GIB)
    assert estimate == (CONTEXT.low, CONTEXT.high)
    assert needed == (12 * GIB + CONTEXT.low, 12 * GIB + CONTEXT.high)
    assert ledger["rows"][1]["source"] == CONTEXT.source
    outside, headroom = headlines["non_torch"], headlines["headroom"]
    assert (outside["other_end"], outside["value"]) == (CONTEXT.low, CONTEXT.high)
    assert headroom["value"] == 68 * GIB - CONTEXT.high
    assert headroom["other_end"] == 68 * GIB - CONTEXT.low
    assert outside["caveats"] == headroom["caveats"] == [CAVEATS["estimated"]]


@pytest.mark.parametrize(
    ("reserved", "fit"),
    [(79 * GIB, "fits"), (79 * GIB + 500 * MIB, "too close to call")],
)
def test_the_rule_is_that_of_the_command_line(run, tmp_path, reserved, fit):
    one = prediction(reserved)
    recorded(run, 0, BEGUN, one)
    found = overview(tmp_path)[0]["prediction"]
    assert found["fit"] == fit
    assert found["fit"] == one.judged().fit
    assert found["sentences"] == [text for text in one.judged()[1:] if text]


def test_of_several_ranks_the_worst_counts_and_one_is_shown_by_itself(run, tmp_path):
    recorded(run, 0, BEGUN, prediction(12 * GIB))
    recorded(run, 1, BEGUN, prediction(40 * GIB, "out_of_memory", error="Out: much. x"))
    found, headlines = overview(tmp_path)
    assert found["prediction"]["fit"] == "does not fit"
    first = found["prediction"]["sentences"][0]
    assert first.startswith("Rank 1, the worst of 2: ")
    needed = found["prediction"]["rows"][-1]
    assert (needed["label"], *ends(needed)) == ("Needed", None, None)
    assert needed["source"].endswith("not known, as it did not run its steps")
    assert headlines["headroom"]["rank"] == 0
    assert overview(tmp_path, rank=0)[0]["prediction"]["fit"] == "fits"


def test_of_ranks_that_all_fit_the_fullest_is_shown(run, tmp_path):
    recorded(run, 0, BEGUN, prediction(12 * GIB))
    recorded(run, 1, BEGUN, prediction(40 * GIB))
    found, headlines = overview(tmp_path)
    assert found["prediction"]["sentences"][0].startswith("Rank 1,")
    assert headlines["headroom"]["rank"] == 1


def test_ranks_on_one_device_are_added_up(run, tmp_path):
    recorded(run, 0, BEGUN, prediction(40 * GIB, host=0))
    recorded(run, 1, BEGUN, prediction(39 * GIB, host=0))
    for found in (overview(tmp_path)[0], overview(tmp_path, rank=1)[0]):
        assert found["prediction"]["fit"] == "too close to call"
        *_, others, needed = found["prediction"]["rows"]
        assert (others["label"], others["mark"]) == ("Other ranks", "estimated")
        low, high = 79 * GIB + 2 * CONTEXT.low, 79 * GIB + 2 * CONTEXT.high
        assert ends(needed) == (low, high)
    recorded(run, 1, BEGUN, prediction(39 * GIB, host=1), attempt=1)
    recorded(run, 0, BEGUN, prediction(40 * GIB, host=0), attempt=1)
    assert overview(tmp_path)[0]["prediction"]["fit"] == "fits"


def test_only_the_last_attempt_counts(run, tmp_path):
    recorded(run, 0, BEGUN, prediction(12 * GIB, "out_of_memory"), attempt=0)
    recorded(run, 0, BEGUN, prediction(12 * GIB), attempt=1)
    assert overview(tmp_path)[0]["prediction"]["fit"] == "fits"


def test_before_its_end_the_estimates_are_known_and_nothing_else(run, tmp_path):
    recorded(run, 0, BEGUN)
    found, headlines = overview(tmp_path)
    assert found["prediction"]["fit"] == "cannot say"
    assert [row["label"] for row in found["prediction"]["rows"]] == [CONTEXT.name]
    assert headlines["non_torch"]["value"] == CONTEXT.high
    assert headlines["headroom"]["value"] is None


def test_what_nobody_estimated_is_not_zero(run, tmp_path):
    recorded(run, 0)
    found, headlines = overview(tmp_path)
    assert found["prediction"] is None
    assert headlines["non_torch"]["value"] is None
    assert "virtual GPU" in headlines["non_torch"]["absent_reason"]


def test_an_ordinary_run_has_nothing_of_it(run, tmp_path, capsys):
    recorded(run, 0, virtual="")
    found, headlines = overview(tmp_path)
    assert found["prediction"] is None
    assert headlines["non_torch"]["value"] == 0
    assert headlines["non_torch"]["other_end"] is None
    assert main(["report", str(tmp_path)]) == 0
    assert "estimated" not in capsys.readouterr().out


def test_the_report_says_the_same(run, tmp_path, capsys):
    def printed(form: str) -> str:
        assert main(["report", str(tmp_path), form]) == 0
        return capsys.readouterr().out

    recorded(run, 0, BEGUN, prediction(79 * GIB + 500 * MIB))
    markdown = printed("--md")
    assert "## too close to call: with the high ends" in markdown
    assert "as in --outside 1.2GiB, to decide" in markdown
    assert "| CUDA context and kernels | 450.00 MiB - 750.00 MiB |" in markdown
    assert "| Needed | 79.93 GiB - 80.22 GiB | of the device's 80.0 GiB |" in markdown
    assert (
        "| Outside PyTorch | 450.00 MiB - 750.00 MiB, estimated | rank 0 |" in markdown
    )
    (plain,) = json.loads(printed("--json"))["runs"]
    assert plain["overview"]["prediction"] == overview(tmp_path)[0]["prediction"]
