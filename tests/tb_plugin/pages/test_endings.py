"""Ends of ranks and of attempts, as the Overview says them."""

from __future__ import annotations

import time

import pytest

from tests.builders import START_NS
from tests.oom_reports import add_report
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.test_overview import GIB, overview

MIB = 1 << 20


def ended(run, number, how, message="", **more):
    """A rank of five steps with an end; `lost`: without one."""
    rank = run.rank(number, **more.pop("header", {}))
    rank.steps(range(5), rss_bytes=[300 * MIB] * 5, **more.pop("columns", {}))
    if how != "lost":
        rank.close(how, message, **more)
    return rank


def endings(tmp_path, **query):
    """Findings about ends; those of other kinds are left out."""
    page = Page(tmp_path)
    found = page.of_run("/findings", "exp", **query)["findings"]
    return [one for one in found if one["key"].startswith("ended_")]


def advice(one):
    return " ".join(told["text"] for told in one["advice"])


def test_a_run_that_ended_in_order_says_nothing(run, tmp_path):
    ended(run, 0, "closed")
    assert endings(tmp_path) == []


@pytest.mark.parametrize(
    ("how", "message", "known", "sentence", "place"),
    [
        ("exception", "ValueError: boom.", {"step": 1204, "phase": "val"},
         "Rank 0 ended by an exception in step 1,204 (val): ValueError: boom.",
         ("error", 1204, "val")),
        ("exception", "ValueError", {},  # what older recordings have
         "Rank 0 ended by an exception after step 4: ValueError.",
         ("error", 4, "")),
        ("exception", "KeyboardInterrupt", {"step": 5, "phase": "train"},
         "Rank 0 was interrupted by Ctrl-C or SIGINT in step 5 (train).",
         ("warning", 5, "train")),
        ("signal", "SIGTERM", {"step": 5, "phase": "train"},
         "Rank 0 was ended by SIGTERM in step 5 (train).",
         ("warning", 5, "train")),
    ],
)  # fmt: skip
def test_an_end_is_told_with_step_and_phase(
    run, tmp_path, how, message, known, sentence, place
):
    ended(run, 0, how, message, **known)
    found = overview(tmp_path)
    (one,) = endings(tmp_path)
    assert one["sentence"] == sentence
    assert (one["severity"], one["step"], one["during"]) == place
    assert (one["key"], one["advice"]) == (f"ended_{how}", [])
    assert found["attempts"][0]["ended"] == how
    assert found["strip"]["lost"].tolist() == [0]


def test_what_the_host_had_no_memory_for_is_told_with_what_was_held(run, tmp_path):
    header = {"memory_limit_bytes": 2 * GIB}
    ended(run, 0, "exception", "MemoryError", step=5, phase="train", header=header)
    (one,) = endings(tmp_path)
    assert one["sentence"].endswith(
        "(train): MemoryError. Its process held 300 MiB in its last steps;"
        " its control group may hold 2.00 GiB."
    )
    assert [e["value"] for e in one["evidence"]] == [300 * MIB, 2 * GIB]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("closed", "ended in order"),
        ("exception", "ended by an exception"),
        ("signal", "was ended by a signal"),
    ],
)
def test_a_recording_that_was_cut_at_its_end_is_no_lost_rank(run, tmp_path, how, words):
    ended(run, 0, how, "SIGTERM" if how == "signal" else "", is_complete=False)
    found = overview(tmp_path)
    assert [one["key"] for one in endings(tmp_path)] == [f"ended_{how}"][
        how == "closed" :
    ]
    assert found["attempts"][0]["ended"] == how
    assert found["strip"]["lost"].tolist() == [0]
    (cut,) = found["problems"]
    assert f"The program {words}, and its recording was cut" in cut["what"]
    assert "killed" not in str(found["problems"])


@pytest.mark.parametrize(
    "oom", [{"on_sigterm": True}, {"on_sigterm": False}, None, [1]]
)
def test_a_lost_rank_claims_no_more_than_is_known(run, tmp_path, oom):
    ended(run, 0, "lost", header={"config": {"oom": oom}})
    found = overview(tmp_path)
    (one,) = endings(tmp_path)
    assert one["sentence"] == (
        "Rank 0 stopped without closing its recording: the cause is not recorded. It was last seen"
        " after step 4. Its process held 300 MiB in its last steps."
    )
    assert (one["step"], one["key"]) == (4, "ended_lost")
    assert "dmesg" in advice(one)
    assert ("MEMBOARD_OOM_ON_SIGTERM=1" in advice(one)) == (oom != {"on_sigterm": True})
    assert found["attempts"][0]["ended"] == "lost"


def test_a_full_control_group_is_where_to_look_first(run, tmp_path):
    ended(
        run,
        0,
        "lost",
        header={"memory_limit_bytes": 500 * MIB},
        columns={"memory_limit_used_bytes": [495 * MIB] * 5},
    )
    (one,) = endings(tmp_path)
    assert one["sentence"].endswith("may hold 500 MiB and held 99.0 % of it.")
    assert advice(one).startswith("The kernel kills what passes that limit")


@pytest.mark.parametrize(("step", "severities"), [(4, []), (2, ["error"])])
def test_a_loss_at_an_out_of_memory_error_is_no_second_error(
    run, tmp_path, step, severities
):
    add_report(ended(run, 0, "lost"), step=step)
    assert [one["severity"] for one in endings(tmp_path)] == severities


def test_a_rank_that_ran_out_is_not_lost_beside_one_that_was(run, tmp_path):
    add_report(ended(run, 0, "lost"), step=4)
    ended(run, 1, "lost")
    (one,) = endings(tmp_path)
    assert (one["rank"], one["others"]) == (1, [])
    assert "more rank" not in one["sentence"]


def test_a_signal_that_came_before_another_end_is_named(run, tmp_path):
    for number, how in enumerate(("exception", "lost")):
        rank = run.rank(number)
        rank.steps(range(5), rss_bytes=[300 * MIB] * 5)
        rank.note("signal", signal="SIGTERM")
        if how == "exception":
            rank.close(how, "SystemExit: 7", step=5, phase="train")
    first, second = endings(tmp_path)
    assert first["sentence"] == (
        "Rank 0 ended by an exception in step 5 (train), after SIGTERM had come:"
        " SystemExit: 7."
    )
    assert "last seen after step 4, after SIGTERM had come." in second["sentence"]


def test_exceptions_come_first_and_what_is_many_is_counted(run, tmp_path):
    for number in range(20):
        ended(run, number, "lost")
    ended(run, 20, "exception", "ValueError: boom", step=5, phase="train")
    ended(run, 21, "signal", "SIGTERM", step=5, phase="train")
    exception, lost, signal = endings(tmp_path)
    assert exception["sentence"] == (
        "Rank 20 ended by an exception in step 5 (train): ValueError: boom."
    )
    assert lost["sentence"].endswith(" 19 more ranks stopped in the same way.")
    assert len(lost["others"]) == 15
    assert (signal["severity"], signal["rank"]) == ("warning", 21)
    assert overview(tmp_path)["attempts"][0]["ended"] == "exception"
    assert [one["rank"] for one in endings(tmp_path, rank=21)] == [21]


def test_the_last_attempt_is_the_one_that_counts(run, tmp_path):
    for attempt, how in enumerate(("exception", "closed")):
        header = {"attempt": attempt, "job": str(attempt)}
        ended(run, 0, how, "ValueError" * attempt, header=header)
    assert endings(tmp_path) == []


def test_odd_values_in_the_last_record_are_no_trouble(run, tmp_path):
    ended(run, 0, "exception", "x" * 100_000, step="five", phase=["train"])
    ended(run, 1, "by_magic")
    (one,) = endings(tmp_path)
    assert one["during"] == ""
    assert one["step"] == 4
    assert len(one["sentence"]) < 1000


def test_an_error_that_is_told_of_is_no_second_finding(run, tmp_path):
    for number in range(2):
        rank = run.rank(number, device_total_bytes=80 * GIB)
        rank.steps(range(5), rss_bytes=[300 * MIB] * 5)
        if number == 1:
            add_report(rank)
        rank.close("exception")
    found = Page(tmp_path).of_run("/findings", "exp")["findings"]
    assert [(one["key"], one["rank"]) for one in found[:2]] == [
        ("really_full", 1),
        ("ended_exception", 0),
    ]
    assert found[1]["others"] == []


@pytest.mark.parametrize("how", ["closed", "exception", "lost", "running"])
def test_attempts_say_how_they_ended(run, tmp_path, monkeypatch, how):
    monkeypatch.setattr(
        "memboard.tb_plugin.index.run.LIVE_SECONDS", 600.0
    )  # a machine may be slow
    start = time.time_ns() - 20 * 10**9 if how == "running" else START_NS
    rank = run.rank(start_ns=start)
    rank.steps(range(7, 10), allocated_peak_bytes=[1] * 3)
    if how in ("closed", "exception"):
        rank.close(how, "RuntimeError: out of memory")
    (attempt,) = overview(tmp_path)["attempts"]
    assert attempt["ended"] == how
    assert (attempt["first_step"], attempt["last_step"], attempt["num_ranks"]) == (
        7,
        9,
        1,
    )
    assert (attempt["ended_ms"] is None) == (how == "running")
    assert Page(tmp_path).get("/runs")["runs"][0]["live"] is (how == "running")


def test_two_jobs_in_one_run_at_the_same_time_are_named(run, tmp_path):
    first = run.rank(job="a", host="alpha", pid=11)
    second = run.rank(
        job="b", host="beta", pid=22, attempt=0, start_ns=START_NS + 30 * 10**9
    )
    first.steps(range(100), allocated_peak_bytes=[1] * 100)
    second.steps(range(100), allocated_peak_bytes=[2] * 100)
    found = overview(tmp_path)
    assert [a["overlaps_previous"] for a in found["attempts"]] == [False, True]
    (problem,) = [p for p in found["problems"] if "Two jobs" in p["what"]]
    assert "alpha (process 11)" in problem["what"]
    assert "beta (process 22)" in problem["what"]
