"""A logdir at a server that speaks S3: found, followed, refused, away and back."""

from __future__ import annotations

import itertools
import json
import pickle
import threading
import time

import pytest

pytest.importorskip("s3fs", reason="s3fs is not installed")
pytest.importorskip("moto.server", reason="moto[server] is not installed")

from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

import memboard as mb
from memboard.tb_plugin.plugin import MemBoardPlugin
from tests.builders import RunBuilder
from tests.collector.mirror.s3_server import SECRET
from tests.collector.recordings import ONLY_STEPS, wait_until
from tests.made_snapshots import long_history
from tests.tb_plugin.storage.stores import StorePage, fill, names, whats


def upload(s3, logdir, prefix="runs") -> str:
    s3.client().put(f"{logdir}/", f"{s3.bucket}/{prefix}/", recursive=True)
    return f"s3://{s3.bucket}/{prefix}"


def listings(s3) -> list[str]:
    return [path for path, _ in s3.proxy.gets if "list-type=2" in path]


def test_all_that_lies_in_a_bucket_is_shown(s3, tmp_path):
    page = StorePage(upload(s3, fill(tmp_path / "logs")))
    found = page.settled()
    assert names(found) == ["exp", "profiler", "snaps", "traces"]
    assert found["problems"] == []
    (history, *_) = page.of_run("/histories", "snaps")["histories"]

    def is_open() -> bool:
        asked = history["reference"]["id"]
        answer = page.of_run("/history", "snaps", history=asked)
        assert answer["state"] != "failed", answer
        return answer["state"] == "ready"

    wait_until(is_open)
    kept = [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]
    assert kept
    assert {path.suffix for path in kept} == {".columns"}  # no raw bytes


def test_a_mirror_is_followed_while_training_runs(s3, tmp_path, monkeypatch):
    # A store that takes seconds to list is listed that much more rarely.
    monkeypatch.setattr("memboard.tb_plugin.index.run.LIVE_SECONDS", 600.0)
    monkeypatch.setattr("memboard.collector.engine.SEGMENT_SECONDS", 0.3)
    monkeypatch.setattr("memboard.collector.mirror.uploads.RETRY_SECONDS", 0.5)
    config = {
        **ONLY_STEPS,
        "remote": {
            "url": f"s3://{s3.bucket}/jobs/{{run_name}}",
            "storage_options": s3.options,
            "close_seconds": 300.0,
        },
    }
    page = StorePage(f"s3://{s3.bucket}/jobs")
    go_on = threading.Event()

    def train() -> None:
        with mb.record(tmp_path / "exp1", config=config) as rec:
            for step in itertools.count():
                is_last = go_on.is_set()
                rec.step(step)
                time.sleep(0.01)
                if is_last:
                    break

    training = threading.Thread(target=train)
    training.start()
    try:
        seen = []
        for _ in range(3):
            found = page.until(
                lambda found: (
                    found["runs"]
                    and found["runs"][0]["last_step"] is not None
                    and found["runs"][0]["last_step"] > (seen or [0])[-1]
                )
            )
            seen.append(found["runs"][0]["last_step"])
        assert found["runs"][0]["live"]
    finally:
        go_on.set()
        training.join()
    last = page.until(lambda found: not found["runs"][0]["live"])["runs"][0]
    assert last["name"] == "exp1"
    assert last["last_step"] > seen[-1]
    assert page.of_run("/overview", "exp1")["problems"] == []
    segments = [
        path
        for path, _ in s3.proxy.gets
        if ".events" in path and "list-type" not in path
    ]
    assert len({path.partition("?")[0] for path in segments}) > 3
    # Immutable segments are small: each came whole, once, however often the page asked.
    assert len(segments) <= 3 * len(set(segments))


def test_polling_lists_little_and_reads_nothing_again(s3, tmp_path, monkeypatch):
    # What may still be on its way to the disk is looked into some seconds later.
    faults = "memboard.tb_plugin.index.problems"
    monkeypatch.setattr(f"{faults}.WRITING_SECONDS", -1e9)
    page = StorePage(upload(s3, fill(tmp_path / "logs")))
    now = time.monotonic()
    monkeypatch.setattr(page.remote._folders, "_clock", lambda: now)
    page.settled()
    num_folders = 8
    assert len(listings(s3)) <= 2 * num_folders
    s3.proxy.gets.clear()
    now += 3.0  # so long ago: each folder is due once
    for _ in range(200):
        page.until(lambda _: True)
        page.store.index._clock.later(10)
        time.sleep(0.005)
    assert len(listings(s3)) <= num_folders
    assert [path for path, _ in s3.proxy.gets if "list-type=2" not in path] == []


def test_thousands_of_objects_are_listed_by_pages_and_not_read(s3, tmp_path):
    backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for number in range(2500):  # by HTTP that would take a minute
        backend.put_object(s3.bucket, f"runs/logs/out{number:04d}.txt", b"")
    RunBuilder(tmp_path / "logs" / "exp").simple(1, 5)
    page = StorePage(upload(s3, tmp_path / "logs"))
    s3.proxy.gets.clear()
    assert names(page.settled()) == ["exp"]
    of_folder = [path for path in listings(s3) if "prefix=runs%2Flogs%2F" in path]
    assert len(of_folder) == 3
    assert [path for path, _ in s3.proxy.gets if ".txt" in path] == []


def test_no_request_waits_for_a_listing(s3, tmp_path):
    address = upload(s3, fill(tmp_path / "logs"))
    s3.proxy.may_pass.clear()
    page = StorePage(address)
    first = page.get("/runs")  # nobody has answered yet
    assert s3.proxy.gets == []
    assert first["runs"] == []
    assert "Listing…" in whats(first)
    assert page.plugin.is_active()
    s3.proxy.may_pass.set()
    page.until(lambda found: len(found["runs"]) == 4)
    assert "Listing…" not in whats(page.settled())


def test_a_bucket_that_there_is_not_is_named(s3):
    page = StorePage("s3://nobody-has-this/runs")
    found = page.until(lambda found: "no such bucket" in whats(found))
    (problem,) = found["problems"]
    assert problem["severity"] == "error"
    assert problem["path"] == "s3://nobody-has-this/runs"
    assert "correct the address" in problem["remedy"]
    assert page.plugin.is_active()


def test_who_is_refused_is_told_what_to_do_and_no_secret(s3, tmp_path, caplog):
    address = upload(s3, fill(tmp_path / "logs"))
    s3.proxy.denies = True
    page = StorePage(f"{address}?X-Amz-Signature={SECRET}")
    found = page.until(lambda found: "denied access" in whats(found))
    said = json.dumps(found["problems"]) + json.dumps(found["logdirs"]) + caplog.text
    assert "AWS_ACCESS_KEY_ID" in said
    for secret in (SECRET, "AKIAOFNOBODY", "Signature"):
        assert secret not in said
    s3.proxy.denies = False
    found = page.until(lambda found: len(found["runs"]) == 4)
    assert "refused" not in whats(page.settled())


def test_credentials_that_are_missing_are_named_and_taken_when_there(
    s3, monkeypatch, tmp_path
):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    page = StorePage(f"s3://{s3.bucket}/runs")
    found = page.until(lambda found: "No credentials were found" in whats(found))
    assert "AWS_PROFILE" in found["problems"][0]["remedy"]
    upload(s3, fill(tmp_path / "logs"))
    login = f"[default]\naws_access_key_id = me\naws_secret_access_key = {SECRET}\n"
    (tmp_path / "none").write_text(login)
    found = page.until(lambda found: len(found["runs"]) == 4)
    assert "No credentials" not in whats(found)


def test_a_server_that_goes_away_and_comes_back(s3, tmp_path):
    page = StorePage(upload(s3, fill(tmp_path / "logs")))
    page.settled()
    s3.go_away()
    found = page.until(lambda found: "cannot be reached" in whats(found))
    assert names(found) == ["exp", "profiler", "snaps", "traces"]
    assert page.of_run("/overview", "exp")["problems"] == []
    s3.come_back()
    upload(s3, tmp_path / "logs" / "exp", "runs/later")
    page.until(lambda found: "later" in names(found), 300)
    # Each folder is tried again by itself, the slowest after its longest pause.
    page.until(lambda found: "cannot be reached" not in whats(found), 300)


def test_hostile_keys_are_text_or_nothing(s3, tmp_path):
    snapshot = pickle.dumps(long_history(30), 4)
    keys = (
        "../outside/memory_snapshot.pickle",
        "runs/../../memory_snapshot.pickle",
        "runs/a//memory_snapshot.pickle",
        "runs/./memory_snapshot.pickle",
        "runs/<b>bold<\\b>/memory_snapshot.pickle",
        "runs/<img src=x onerror=alert(1)>/memory_snapshot.pickle",
        "runs/line\nbreak/memory_snapshot.pickle",
        "runs/good/memory_snapshot.pickle",
        "runs/" + "x" * 900 + "/memory_snapshot.pickle",
    )
    # HTTP itself would tidy some of them up on their way.
    backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for key in keys:
        backend.put_object(s3.bucket, key, snapshot)
    page = StorePage(f"s3://{s3.bucket}/runs")
    found = page.settled()
    assert set(names(found)) <= {
        "good",
        "a",
        "line\nbreak",
        "x" * 900,
        "<img src=x onerror=alert(1)>",
    }
    assert {"good", "<img src=x onerror=alert(1)>"} <= set(names(found))
    assert "no file can have" in whats(found)
    read = {path.partition("?")[0] for path, _ in s3.proxy.gets}
    assert not any("outside" in path for path in read)


def test_a_bucket_may_be_the_logdir(s3, tmp_path):
    s3.client().put(
        f"{fill(tmp_path / 'logs')}/exp/", f"{s3.bucket}/exp/", recursive=True
    )
    assert names(StorePage(f"s3://{s3.bucket}").settled()) == ["exp"]
    assert names(StorePage(f"s3://{s3.bucket}/exp/").settled()) == ["exp"]


def test_the_plugin_asks_nothing_before_somebody_looks(s3):
    page = StorePage(f"s3://{s3.bucket}/runs")
    assert isinstance(page.plugin, MemBoardPlugin)
    time.sleep(0.2)
    assert s3.proxy.gets == []
