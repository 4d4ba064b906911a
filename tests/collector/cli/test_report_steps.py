"""What the Steps view shows, as JSON, text and Markdown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tb_plugin.cli import main
from tb_plugin.cli.report.sections import rate_text
from tests.builders import RunBuilder
from tests.tb_plugin.step_runs import CONFIG, Story, write

if TYPE_CHECKING:
    from pathlib import Path


def late(rank: int, step: int) -> dict[str, float]:
    return {"dataloader": 38.0} if rank == 5 else {}


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    told = Story(8, 120, in_step=True, more=late).tell()
    config = {**CONFIG, "flops": {"device_peak": 1e14}}
    write(tmp_path / "exp", told, counters={"tokens": 4096}, flops=2e12, config=config)
    return tmp_path


def said(capsys, *arguments: object) -> str:
    assert main(["report", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_json_holds_what_the_page_shows(logdir, capsys):
    (run,) = json.loads(said(capsys, "--json", logdir))["runs"]
    steps, beside = run["steps"], run["stragglers"]
    assert (beside["num_ranks"], beside["num_steps"]) == (8, 120)
    assert sum(part["share"] for part in beside["parts"]) == pytest.approx(1.0)
    assert beside["rows"][0]["rank"] == 5
    assert beside["rows"][0]["words"].startswith("rank 5: dataloader +38.")
    assert "straggler" in [one["key"] for one in run["findings"]["findings"]]
    rates = {one["key"]: one for one in steps["rates"]}
    tokens = rates["tokens"]
    assert tokens["summed_median"] == pytest.approx(8 * tokens["median"])
    assert rates["mfu"]["median"] == pytest.approx(13.5, rel=0.05)
    assert steps["flops"]["origin"] == "settings"
    assert steps["absent"] == []


def test_text_and_markdown_say_it_in_words(logdir, capsys):
    for form in ([], ["--md"]):
        text = said(capsys, *form, logdir)
        assert "Rank 5 on host0 is slower than the other 7" in text
        assert "rank 5: dataloader +38." in text
    assert "## steps: 120" in text
    assert "| backward |" in text


def test_one_rank_alone_has_no_stragglers(logdir, capsys):
    (run,) = json.loads(said(capsys, "--json", "--rank", 5, logdir))["runs"]
    assert run["steps"]["rank"] == 5
    assert run["stragglers"]["rows"] == []
    keys = [one["key"] for one in run["findings"]["findings"]]
    assert "dataloader_bound" in keys
    assert "straggler" not in keys


def test_a_run_without_step_times_has_none(tmp_path, capsys):
    RunBuilder(tmp_path / "exp").simple(2, 10)
    (run,) = json.loads(said(capsys, "--json", tmp_path))["runs"]
    assert run["steps"] is None
    assert "## steps" not in said(capsys, "--md", tmp_path)


@pytest.mark.parametrize(
    ("value", "text"),
    [(6.7931, "6.793"), (27823.4, "27,823"), (4.08e13, "40.8 T")],
)
def test_rates_are_short(value, text):
    assert rate_text(value) == text
