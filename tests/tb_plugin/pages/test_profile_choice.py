"""The trace that is shown where some cannot be opened, or not whole."""

from __future__ import annotations

import pytest

from tests.kineto_files import trained
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.profiled import columns_of
from tests.tb_plugin.pages.test_profile import ROUTES, ask


def test_a_bad_trace_says_why_and_hides_no_other(tmp_path):
    trained(0, 2).write(tmp_path / "exp" / "host_0.1.pt.trace.json")
    bad = tmp_path / "exp" / "host_1.1.pt.trace.json"
    bad.write_text("this is no trace")
    page = Page(tmp_path)
    answer = ask(page, "distributed")
    assert columns_of(answer["ranks"])["rank"].tolist() == [0]
    assert "1 cannot be read" in answer["summary"]
    assert "host_1" in answer["problems"][0]["path"]
    ids = {one["name"]: one["id"] for one in ask(page, "profile")["choice"]["traces"]}
    choice = ask(page, "operators", source=ids[bad.name])["choice"]
    assert choice["state"] == "failed"
    assert choice["problem"]["what"]


@pytest.mark.parametrize("retried", [False, True])
def test_the_newest_trace_that_opens_is_shown_and_why_no_newer_one(
    tmp_path, monkeypatch, retried
):
    if retried:  # what failed is tried again at every request, and fails again
        monkeypatch.setattr("memboard.tb_plugin.jobs.job.RETRY_S", -1.0)
    for number in (100, 200):
        trained().write(tmp_path / "exp" / f"host_0.{number}.pt.trace.json")
    torn = [tmp_path / "exp" / f"host_0.{n}.pt.trace.json.gz" for n in (300, 400)]
    for path in torn:
        path.write_bytes(b"\x1f\x8b\x08")
    page = Page(tmp_path)
    for route in ROUTES[:6]:
        choice = ask(page, route)["choice"]
        ids = {one["name"]: one["id"] for one in choice["traces"]}
        assert choice["source"] == ids["host_0.200.pt.trace.json"]
        assert (choice["state"], choice["problem"]) == ("ready", None)
        told = [(one["path"], one["severity"]) for one in choice["problems"]]
        assert told == [(f"exp/{path.name}", "warning") for path in reversed(torn)]
        said = choice["problems"][0]["what"]
        assert said.startswith(f"Another trace, {torn[1].name}, cannot be opened: ")
        assert "host_0.200" in choice["problems"][0]["salvaged"]
    if not retried:  # asked for by name, it says itself what is wrong with it
        asked = ask(page, "kernels", source=ids[torn[0].name])["choice"]
        assert asked["source"] == ids[torn[0].name]
        assert asked["state"] == "failed"


def test_where_no_trace_opens_the_first_says_why(tmp_path):
    paths = [tmp_path / f"exp/host_{rank}.1.pt.trace.json" for rank in range(3)]
    paths[0].parent.mkdir()
    for path in paths:
        path.write_text("this is no trace")
    choice = ask(Page(tmp_path), "operators")["choice"]
    assert (choice["state"], choice["problems"]) == ("failed", [])
    assert choice["problem"]["path"] == f"exp/{paths[0].name}"


def test_what_a_trace_that_is_not_whole_lacks_is_said_on_every_page(tmp_path):
    whole = trained(0, 2).write(tmp_path / "exp" / "host_0.1.pt.trace.json")
    cut = trained(1, 2).write(tmp_path / "exp" / "host_1.1.pt.trace.json")
    text = cut.read_text()
    cut.write_text(text[: text.index('"aten::add"')])
    page = Page(tmp_path)
    ids = {one["name"]: one["id"] for one in ask(page, "profile")["choice"]["traces"]}
    for route in ROUTES:
        if route.startswith("distributed"):
            continue
        choice = ask(page, route, source=ids[cut.name])["choice"]
        assert (choice["state"], choice["problem"]) == ("ready", None)
        assert any("incomplete" in one["what"] for one in choice["problems"])
        assert {one["path"] for one in choice["problems"]} == {cut.name}
        assert ask(page, route, source=ids[whole.name])["choice"]["problems"] == []
    answer = ask(page, "distributed")
    assert "cannot be read" not in answer["summary"]
    assert [one["rank"] for one in answer["problems"]] == [1]


def test_a_trace_is_of_the_rank_and_the_cycle_that_are_chosen(tmp_path):
    for rank in range(2):
        for number in (100, 200):
            made = trained(rank, 2)
            made.write(tmp_path / "exp" / f"host_{rank}.{number}.pt.trace.json")
    page = Page(tmp_path)

    def shown(**query) -> str:
        choice = ask(page, "kernels", **query)["choice"]
        (name,) = (
            one["name"] for one in choice["traces"] if one["id"] == choice["source"]
        )
        return name

    assert shown(rank=1) == "host_1.200.pt.trace.json"
    assert shown(rank=1, cycle=1) == "host_1.100.pt.trace.json"
    assert shown(rank=1, cycle=9) == "host_1.200.pt.trace.json"
