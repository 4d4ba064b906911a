"""Views of what was not recorded say why there is nothing, and what to do."""

from __future__ import annotations

import pytest

from tests.tb_plugin.client import Page

ROUTES = {
    "functions": ("functions", "mb.profiled"),
    "histories": ("history", "history=True"),
    "modules": ("modules", "modules=True"),
}
"""The source of each, and what records it."""


def absent_of(logdir, route):
    return Page(logdir).of_run(f"/{route}", "exp")["absent"]


@pytest.mark.parametrize(
    ("route", "source", "remedy"), [(r, *s) for r, s in ROUTES.items()]
)
def test_a_run_without_any_says_how_to_get_one(run, tmp_path, route, source, remedy):
    run.simple(2, 10)
    (absent,) = absent_of(tmp_path, route)
    assert (absent["source"], absent["status"]) == (source, "off")
    assert absent["num_ranks"] == 2
    assert remedy in absent["remedy"]


@pytest.mark.parametrize("route", [*ROUTES, "trace_reports"])
def test_what_its_own_sources_said_is_passed_on(run, tmp_path, route):
    source = ROUTES.get(route, ("torch_profiler",))[0]
    (rank,) = run.simple(1, 3, close=False)
    rank.source(source, "absent", "no accelerator", "Use one.")
    rank.source(f"{source}.device", "failed", "it raised", "Mend it.")
    rank.source("cpu", "absent", "nothing of this view")
    rank.close()
    said = [(a["source"], a["status"], a["reason"]) for a in absent_of(tmp_path, route)]
    assert said == [
        (source, "absent", "no accelerator"),
        (f"{source}.device", "failed", "it raised"),
    ]


@pytest.mark.parametrize(
    ("route", "word"), [("module", "modules=True"), ("history", "history=True")]
)
def test_one_of_what_was_not_recorded_is_not_found(run, tmp_path, route, word):
    run.simple(1, 10)
    page = Page(tmp_path)
    answer = page.raw(f"/{route}", run=page.run_id("exp"), module="Net")
    assert answer.status_code == 404
    assert word in answer.json["remedy"]
