"""`/trace_merged`: the download is the merged trace, and nothing is left behind."""

from __future__ import annotations

import gzip
import json
import threading

import pytest

from memboard.tb_plugin.pages.trace_files.merged_download import MAX_AT_ONCE
from tests.tb_plugin.client import Page
from tests.tb_plugin.merging.chrome import check, events, slice_of, torch_trace


@pytest.fixture
def page(tmp_path, run, monkeypatch):
    # Places are the process's; a response that a test does not close keeps its own.
    places = threading.BoundedSemaphore(MAX_AT_ONCE)
    monkeypatch.setattr(
        "memboard.tb_plugin.pages.trace_files.merged_download._free", places
    )
    for number in range(3):
        rank = run.rank(number, world_size=3)
        rank.steps(range(20), rss_bytes=range(20))
        rank.close()
    return Page(tmp_path)


def test_a_run_is_downloaded_as_one_trace(page, run):
    before = sorted(run.folder.rglob("*"))
    response = page.raw("/trace_merged", run=page.run_id("exp"))
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/gzip"
    name = 'attachment; filename="exp.merged_trace.json.gz"'
    assert response.headers["Content-Disposition"] == name
    assert "Content-Encoding" not in response.headers
    trace = json.loads(gzip.decompress(response.data))
    check(trace)
    assert [one["rank"] for one in trace["metadata"]["ranks"]] == [0, 1, 2]
    assert sorted(run.folder.rglob("*")) == before


def test_some_ranks_alone(page):
    response = page.raw("/trace_merged", run=page.run_id("exp"), ranks="1-2")
    trace = json.loads(gzip.decompress(response.data))
    assert [one["rank"] for one in trace["metadata"]["ranks"]] == [1, 2]
    assert len(events(trace, "C")) == 2 * 20


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"run": "../../etc"}, 404),
        ({"cycle": "0"}, 400),
        ({"cycle": "x"}, 400),
        ({"attempt": "7"}, 404),
        ({"ranks": "900"}, 404),
        ({"ranks": "a"}, 400),
    ],
)
def test_what_means_nothing_is_refused(page, query, status):
    response = page.raw("/trace_merged", **{"run": page.run_id("exp"), **query})
    assert response.status_code == status
    assert {"what", "where", "remedy"} <= json.loads(response.data).keys()
    # A refused one takes nobody's place.
    for _ in range(MAX_AT_ONCE + 1):
        with page.raw("/trace_merged", run=page.run_id("exp")) as download:
            assert download.status_code == 200
            assert download.data


def test_only_so_many_are_made_at_once(page):
    run = page.run_id("exp")
    held = [page.raw("/trace_merged", run=run) for _ in range(MAX_AT_ONCE)]
    assert page.raw("/trace_merged", run=run).status_code == 503
    held.pop().close()
    assert page.raw("/trace_merged", run=run).status_code == 200


def test_a_place_is_free_once_its_download_has_been_read(page):
    run = page.run_id("exp")
    downloads = [page.raw("/trace_merged", run=run) for _ in range(MAX_AT_ONCE)]
    assert all(download.data for download in downloads)
    others = [page.raw("/trace_merged", run=run) for _ in range(MAX_AT_ONCE)]
    assert all(other.status_code == 200 for other in others)
    for download in downloads:  # closing gives no place back a second time
        download.close()
    assert page.raw("/trace_merged", run=run).status_code == 503


def test_links_that_lead_out_are_not_followed(page, run, tmp_path_factory):
    outside = torch_trace(
        tmp_path_factory.mktemp("outside") / "rank0.json", [slice_of("secret", 1.0)]
    )
    (run.folder / "rank0.json").symlink_to(outside)
    response = page.raw("/trace_merged", run=page.run_id("exp"))
    assert b"secret" not in gzip.decompress(response.data)
