"""Tracks: one line per host and column, and the chosen rank's own."""

from __future__ import annotations

import pytest

from memboard.tb_plugin.pages.timeline.host import MAX_HOSTS
from tests.builders import GIB
from tests.tb_plugin.client import Page


def hosts(run, num_ranks: int, per_host: int = 2) -> None:
    for number in range(num_ranks):
        rank = run.rank(
            number, host=f"n{number // per_host}", memory_limit_bytes=32 * GIB
        )
        rank.steps(range(20), rss_bytes=[number + 1] * 20)
        if number % per_host == 1:  # not the lowest rank of its host
            rank.rows("cpu", range(20), cpu_total_pct=[10.0 * number] * 20)
        rank.rows("memory", range(20), memory_used_bytes=[number] * 20)
        rank.close()


def tracks(found) -> dict:
    return {track["key"]: track for track in found["tracks"]}


def test_the_lowest_rank_that_recorded_a_column_speaks_for_its_host(run, tmp_path):
    hosts(run, 6)
    found = Page(tmp_path).of_run("/host", "exp")
    assert found["hosts"] == ["n0", "n1", "n2"]
    assert found["rank"] == 0
    shown = tracks(found)
    assert [(x["name"], x["rank"]) for x in shown["cpu"]["lines"]] == [
        ("cpu_total_pct", 1),
        ("cpu_total_pct", 3),
        ("cpu_total_pct", 5),
    ]
    assert [x["rank"] for x in shown["memory"]["lines"]] == [0, 2, 4]
    assert shown["cpu"]["limit"] == 100
    assert shown["cpu"]["lines"][1]["y"].tolist() == [30.0] * 20


def test_process_columns_are_the_chosen_ranks(run, tmp_path):
    hosts(run, 6)
    found = Page(tmp_path).of_run("/host", "exp", rank=3)
    assert found["rank"] == 3
    assert found["hosts"] == ["n1"]
    own = tracks(found)["process_memory"]
    assert [(x["name"], x["rank"]) for x in own["lines"]] == [("rss_bytes", 3)]
    assert own["lines"][0]["y"].tolist() == [4] * 20
    assert own["limit"] == 32 * GIB
    assert [x["rank"] for x in tracks(found)["cpu"]["lines"]] == [3]


def test_of_more_hosts_than_a_chart_holds_the_fullest_are_shown(run, tmp_path):
    num_hosts = 3 * MAX_HOSTS
    for host in range(num_hosts):
        builder = run.rank(host, world_size=num_hosts, host=f"n{host:02d}")
        used = (7 * host) % num_hosts
        builder.rows("memory", range(4), memory_used_bytes=[used] * 4)
        builder.close()
    found = Page(tmp_path).of_run("/host", "exp")
    fullest = [h for h in range(num_hosts) if (7 * h) % num_hosts >= 2 * MAX_HOSTS]
    assert found["hosts"] == [f"n{host:02d}" for host in fullest]
    assert found["num_hosts"] == num_hosts
    assert [line["rank"] for line in tracks(found)["memory"]["lines"]] == fullest


@pytest.mark.parametrize("kind", ["step", "relative", "wall"])
def test_all_tracks_share_one_axis(run, tmp_path, kind):
    hosts(run, 2)
    found = Page(tmp_path).of_run("/host", "exp", x=kind)
    for track in found["tracks"]:
        for line in track["lines"]:
            assert line["x"][0] >= found["x_low"]
            assert line["x"][-1] <= found["x_high"]
            assert len(line["x"]) == 20


def test_what_is_absent_says_why(run, tmp_path):
    rank = run.rank()
    rank.source("gpu", "absent", "no NVML", "Install it.")
    rank.source("modules", "off", "switched off", "")  # told by its own view
    rank.source("functions.device", "absent", "no accelerator", "")
    rank.source("device", "absent", "no accelerator", "")
    found = Page(tmp_path).of_run("/host", "exp")
    assert found["tracks"] == []
    assert [(a["source"], a["group"]) for a in found["absent"]] == [("gpu", "sensor")]


def test_a_line_is_flat_if_it_never_changed_in_all_that_was_recorded(run, tmp_path):
    rank = run.rank(0)
    rank.steps(
        range(400), rss_bytes=[GIB] * 399 + [2 * GIB], workers_rss_bytes=[0] * 400
    )
    rank.rows("cpu", range(20), cpu_total_pct=[7.0] * 20)
    rank.rows("memory", range(1), memory_used_bytes=[GIB])
    rank.close()
    page = Page(tmp_path)
    # The rise lies outside the window.
    for window in ({}, {"x0": 0, "x1": 100}):
        found = page.of_run("/host", "exp", px=10, **window)
        lines = [line for track in found["tracks"] for line in track["lines"]]
        assert {line["name"]: line["is_flat"] for line in lines} == {
            "cpu_total_pct": True,
            "memory_used_bytes": False,  # one value does not tell
            "rss_bytes": False,
            "workers_rss_bytes": True,
        }
    series = page.of_run("/timeline", "exp")["available"]
    assert {one["key"] for one in series if one["is_flat"]} == {
        "cpu/cpu_total_pct",
        "step/workers_rss_bytes",
    }
