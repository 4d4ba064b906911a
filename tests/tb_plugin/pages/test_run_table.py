"""All runs in one table: numbers of the other pages, and settings that differ."""

from __future__ import annotations

import numpy as np

from memboard.tb_plugin.facts.comparison import run_table as module
from memboard.tb_plugin.facts.comparison.run_settings import MAX_DIFFERENT
from tests.builders import RunBuilder, age
from tests.tb_plugin.client import Page, answered, numbers_of, texts_of

GIB = 1 << 30
STEPS = np.arange(100)


def recorded(logdir, name, *, peak=10, ranks=1, took=0.5, ooms=0, **header):
    builder = RunBuilder(logdir / name)
    for number in range(ranks):
        rank = builder.rank(
            number, world_size=ranks, device_total_bytes=80 * GIB, **header
        )
        rank.steps(
            STEPS,
            allocated_peak_bytes=np.full(len(STEPS), (peak + number) * GIB),
            reserved_peak_bytes=np.full(len(STEPS), (peak + number + 2) * GIB),
            step_time_seconds=np.full(len(STEPS), took),
            num_ooms=ooms * (STEPS > 90),
        )
        rank.close()


def table_of(page):
    """Once all verdicts and numbers are known."""

    def ask():
        return page.get("/run_table")

    def is_known(answer):
        steps = numbers_of(answer["table"], "step_seconds")
        statuses = [standing["status"] for standing in answer["standings"]]
        return None not in statuses and not np.isnan(steps).any()

    return answered(ask, is_known)["table"]


def test_its_numbers_are_those_of_overview_list_and_comparison(tmp_path):
    recorded(tmp_path, "base", peak=40, ranks=4, took=0.25)
    recorded(tmp_path, "checkpointing", peak=30, ranks=4, took=0.5)
    age(tmp_path)
    page = Page(tmp_path)
    table = table_of(page)
    for row, name in enumerate(texts_of(table, "name")):
        overview = page.of_run("/overview", name)
        values = {one["key"]: one["value"] for one in overview["headlines"]}
        assert numbers_of(table, "peak_bytes")[row] == values["peak_allocated"]
        assert numbers_of(table, "headroom_bytes")[row] == values["headroom"]
        compared = page.of_run("/compare_runs", name, rank=0, b_rank=3)["figures"]
        label = texts_of(compared, "name").index("Step time (median)")
        assert (
            numbers_of(table, "step_seconds")[row] == numbers_of(compared, "a")[label]
        )


def test_the_worst_comes_first_and_says_why(tmp_path):
    recorded(tmp_path, "fine")
    recorded(tmp_path, "died", ooms=1)
    age(tmp_path)
    table = table_of(Page(tmp_path))
    assert table["usual"] == "-verdict"
    order = np.argsort(numbers_of(table, "verdict"))
    verdicts = [texts_of(table, "verdict")[row] for row in order]
    assert verdicts == ["out of memory", "fine"]


def test_settings_stand_in_columns_where_runs_differ(tmp_path):
    for number in range(3):
        config = {
            "modules": {"enabled": number == 2},
            "oom": {"enabled": True},
            "dumps": [],
            "rank": number,
        }
        header = {"config": config, "versions": {"torch": f"2.{12 + number // 2}"}}
        recorded(tmp_path, f"run-{number}", **header)
    (tmp_path / "other").mkdir()
    age(tmp_path)
    table = table_of(Page(tmp_path))
    values = {
        column["title"]: dict(
            zip(texts_of(table, "name"), column["texts"], strict=True)
        )
        for column in table["columns"]
        if column["key"].startswith(module.SETTING)
    }
    assert values == {
        "PyTorch": {"run-0": "2.12", "run-1": "2.12", "run-2": "2.13"},
        "modules.enabled": {"run-0": "off", "run-1": "off", "run-2": "on"},
    }


def test_columns_and_rows_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "memboard.tb_plugin.pages.compare.run_table.MAX_ROWS", num_rows := 5
    )
    for number in range(8):
        many = {f"setting_{place}": number for place in range(2 * MAX_DIFFERENT)}
        recorded(tmp_path, f"run-{number}", config=many)
    age(tmp_path)
    table = table_of(Page(tmp_path))
    assert (table["num_rows"], table["num_all"]) == (num_rows, 8)
    assert table["summary"] == "8 runs; the first 5 of 8 are listed."
    keys = [column["key"] for column in table["columns"]]
    assert sum(key.startswith(module.SETTING) for key in keys) == MAX_DIFFERENT


def test_a_poll_of_many_runs_without_news_makes_no_row(tmp_path, monkeypatch):
    for number in range(40):
        recorded(tmp_path, f"run-{number}")
    age(tmp_path)
    page = Page(tmp_path)
    table_of(page)

    def made(*_):
        raise AssertionError("a row was made again")

    monkeypatch.setattr(module, "run_numbers", made)
    answer = page.raw("/run_table")
    held = {"If-None-Match": answer.headers["ETag"]}
    assert page.raw("/run_table", headers=held).status_code == 304
