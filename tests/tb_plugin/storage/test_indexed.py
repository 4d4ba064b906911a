"""The index of a run at a store: few requests, the same answers, never trusted blindly."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

import memboard as mb
from memboard.collector.format.names import RUN_INDEX
from memboard.tb_plugin import storage
from memboard.tb_plugin.cli import main
from tests.builders import RunBuilder
from tests.collector.recordings import ONLY_STEPS, wait_until
from tests.tb_plugin.storage.stores import StorePage

NUM_RANKS = 6


@pytest.fixture
def url(s3, tmp_path):
    """A logdir with a run of many ranks, each too large to come whole."""
    RunBuilder(tmp_path / "logs" / "exp").simple(NUM_RANKS, 400)
    s3.client().put(f"{tmp_path}/logs/", f"{s3.bucket}/runs/", recursive=True)
    return f"s3://{s3.bucket}/runs"


def opened(url: str) -> StorePage:
    """A page on it that has read every rank; nothing is known from pages before."""
    storage._mounted.clear()
    page = StorePage(url)
    page.settled()
    (found,) = page.get("/runs")["runs"]
    run = page.store.run(found["id"])
    end = time.monotonic() + 180
    while len(run.files) < NUM_RANKS or run.unfinished:
        page.of_run("/overview", "exp")
        assert time.monotonic() < end
    return page


def reads(s3, name: str) -> int:
    """Requests for bytes of files whose names hold this."""
    return sum(name in path and "list-type" not in path for path, _ in s3.proxy.gets)


def answers(page: StorePage) -> str:
    """What the page shows."""
    found = [page.of_run(route, "exp") for route in ("/overview", "/timeline")]
    return json.dumps(found, default=np.ndarray.tolist)


def test_a_run_with_an_index_opens_with_few_requests_and_says_the_same(s3, url, capsys):
    without = answers(opened(url))
    assert reads(s3, "rank0") >= NUM_RANKS
    assert main(["index", url]) == 0
    assert capsys.readouterr().out.startswith(f"exp: {NUM_RANKS} files, ")
    s3.proxy.gets.clear()
    assert answers(opened(url)) == without
    assert reads(s3, "rank0") == 0
    assert 0 < reads(s3, RUN_INDEX) <= 3


def test_a_file_that_changed_since_is_read_itself(s3, url, tmp_path):
    assert main(["index", url]) == 0
    RunBuilder(tmp_path / "more" / "exp").simple(1, 900)
    (old,) = s3.client().glob(f"{s3.bucket}/runs/exp/plugins/memboard/rank00000-*")
    (new,) = (tmp_path / "more").rglob("rank00000-*")
    s3.client().put(str(new), old)
    s3.proxy.gets.clear()
    page = opened(url)
    assert 0 < reads(s3, "rank00000") <= reads(s3, "rank0") <= 3
    columns = page.of_run("/overview", "exp")["strip"]["table"]["columns"]
    (last,) = [one["numbers"] for one in columns if one["key"] == "last_step"]
    assert list(last)[:2] == [899, 399]


SPOILED = {
    "empty": lambda data: b"",
    "huge head": lambda data: b"MBINDEX1" + b"\xff" * 100,
    "cut off": lambda data: data[: len(data) // 2],
    "zeros": lambda data: bytes(len(data)),
    "flipped head": lambda data: data[:40] + b"x" + data[41:],
    "flipped piece": lambda data: data[:-4000] + bytes(4000),
}


def test_a_damaged_index_costs_requests_alone(s3, url):
    without = answers(opened(url))
    assert main(["index", url]) == 0
    path = f"{s3.bucket}/runs/exp/plugins/memboard/{RUN_INDEX}"
    whole = s3.client().cat_file(path)
    for name, spoil in SPOILED.items():
        s3.client().pipe_file(path, spoil(whole))
        page = opened(url)
        assert answers(page) == without, name
        assert page.get("/runs")["problems"] == [], name


def test_polling_lists_and_reads_nothing_that_did_not_change(s3, url, monkeypatch):
    """Also where a run is larger than what is kept of it."""
    monkeypatch.setattr("memboard.tb_plugin.storage.content.blocks.MAX_BYTES", 50_000)
    page = opened(url)
    answers(page)
    s3.proxy.gets.clear()
    for _ in range(20):
        page.get("/runs")
        page.of_run("/overview", "exp")
        page.store.index._clock.later(10)
        time.sleep(0.05)
    assert reads(s3, "rank0") == 0


def test_what_is_no_store_is_refused_with_what_to_do(tmp_path, capsys):
    assert main(["index", str(tmp_path)]) == 2
    assert "s3://bucket/runs" in capsys.readouterr().err


def test_a_mirrored_run_of_many_ranks_is_indexed_when_rank_0_closes(
    s3, tmp_path, monkeypatch
):
    monkeypatch.setattr("memboard.collector.ending._MIN_INDEXED", 3)
    url = f"s3://{s3.bucket}/runs/exp"
    for rank in reversed(range(3)):
        rec = mb.record(
            tmp_path / "exp",
            rank=rank,
            world_size=3,
            remote={"url": url, "close_seconds": 60},
            **ONLY_STEPS,
        )
        rec.step()
        rec.close()
    made = f"{s3.bucket}/runs/exp/plugins/memboard/{RUN_INDEX}"
    wait_until(lambda: s3.client().exists(made), 180)
