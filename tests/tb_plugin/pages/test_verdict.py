"""`/verdict`: from a report, from its history, from other tools' files, from less."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.builders import GIB, RunBuilder, flip_bit, peak_of
from tests.errors_found import errors_in
from tests.oom_reports import add_error, add_report
from tests.simulate import OOM_CAUSES, oom_case
from tests.tb_plugin.client import Page, answered

REAL = Path(os.environ.get("MEMBOARD_REAL_DATA", "missing"), "snapshots")
CRASH = REAL / "Constructor-Sun+code_location__memory_snapshot.pickle"

MESSAGE = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of "
    "79.15 GiB of which 1.31 GiB is free. Of the allocated memory 73.20 GiB is "
    "allocated by PyTorch, and 3.10 GiB is reserved by PyTorch but unallocated."
)


@pytest.fixture
def run(tmp_path) -> RunBuilder:
    return RunBuilder(tmp_path / "exp")


def asked(tmp_path: Path, name: str = "exp", **query):
    """The answer once nothing is read any more."""
    page = Page(tmp_path)
    return answered(
        lambda: page.of_run("/findings", name, **query),
        lambda found: not found["still_reading"],
    )


def test_a_run_without_errors_has_no_verdict(run, tmp_path):
    rank = run.rank(0)
    rank.steps(np.arange(20), allocated_peak_bytes=peak_of(0, np.arange(20)))
    rank.close()
    found = asked(tmp_path)
    assert errors_in(found) == []
    assert found["num_errors"] == 0
    assert found["still_reading"] is False


def test_a_report_alone_tells_what_it_can(run, tmp_path):
    rank = run.rank(3, device_total_bytes=80 * GIB)
    add_report(rank)
    rank.close(how="exception")
    (one,) = errors_in(asked(tmp_path))
    assert (one["rank"], one["device"], one["step"]) == (3, 0, 40)
    assert one["origin"] == "oom"
    assert one["during"] == "backward"
    assert one["line"] == "model.py:128 forward"
    assert one["key"] == "really_full"
    assert one["analysed"] is False
    assert one["figures"]["requested"] == 2 * GIB
    assert one["figures"]["capacity"] == 80 * GIB
    assert "free_blocks" not in one["figures"]
    assert one["history"] is None
    assert one["moment"] is None
    assert (
        "2.00 GiB at model.py:128 forward failed with 1.00 GiB free" in one["sentence"]
    )
    assert any("history" in text for text in one["not_recorded"])
    first, second, third = one["held_by"]  # lines are put together
    assert first["label"] == "model.py:128 forward"
    assert first["bytes"] == 43 * GIB
    assert first["num_blocks"] == 31
    assert first["share"] == pytest.approx(43 / 77)
    assert first["category"] == "activation"
    assert second["label"] == "optim.py:40 step"
    assert (third["label"], third["category"]) == ("", None)
    assert one["held_sentence"].startswith("94.8 % of the 77.0 GiB")


def test_what_a_report_lacks_is_said(run, tmp_path):
    rank = run.rank(0)
    held = {"live_bytes": 77 * GIB, "why_not": "there are too many live blocks"}
    add_report(rank, tables={}, holders=held, num_not_reported=3)
    rank.close()
    (one,) = errors_in(asked(tmp_path))
    assert {
        "Which lines held the memory, in the report: there are too many live blocks.",
        "3 more errors have no report of their own in this recording.",
    } <= set(one["not_recorded"])


def test_a_history_makes_it_surer(run, tmp_path):
    case = oom_case("fragmented", 10_001)
    rank = run.rank(0)
    add_error(rank, case)
    rank.close(how="exception")
    (one,) = errors_in(asked(tmp_path))
    assert one["analysed"] is True
    assert one["key"] == "fragmented"
    assert one["figures"]["free_blocks"] == pytest.approx(
        case.label.same_free_bytes, rel=2e-3
    )
    assert one["figures"]["largest_free"] < one["figures"]["requested"]
    assert one["history"].startswith("0-")
    assert one["moment"] is not None
    first = one["advice"][0]
    assert "expandable" in first["setting"] or "expandable already" in first["text"]
    assert first["gain"] == pytest.approx(case.label.same_free_bytes, rel=2e-3)
    decisive = {e["key"] for e in one["evidence"] if e["decisive"]}
    assert decisive == {"free_blocks", "largest_free"}


@pytest.mark.parametrize("cause", OOM_CAUSES)
def test_every_cause_reaches_the_page(run, tmp_path, cause):
    case = oom_case(cause, 10_002)
    label = case.label
    for number in range(len(case.ranks)):
        rank = run.rank(number, world_size=len(case.ranks))
        peers = iter(label.peers_peak_bytes)
        peak = label.active_bytes if number == label.rank else next(peers)
        rank.steps(np.arange(3), allocated_peak_bytes=np.full(3, float(peak)))
        if number == label.rank:
            add_error(rank, case)
        rank.close()
    (one,) = errors_in(asked(tmp_path))
    assert one["rank"] == label.rank
    assert one["key"] == cause
    assert one["sentence"].endswith(".")
    assert one["advice"]
    assert all(e["scope"] for e in one["evidence"])
    peers = one["peers"]
    assert sorted(peer["rank"] for peer in peers) == [
        number for number in range(len(case.ranks)) if number != label.rank
    ]


def test_peers_say_what_they_had_last(run, tmp_path):
    steps = np.arange(30)
    for number in range(3):
        rank = run.rank(number, world_size=3)
        rank.steps(
            steps[: 30 - number],
            allocated_peak_bytes=np.full(30 - number, (20.0 + number) * GIB),
        )
        if number == 0:
            add_report(rank, step=30)
            rank.close(how="exception")
        elif number == 1:
            rank.close()
        # Rank 2 was killed: nothing more of it.
    (one,) = errors_in(asked(tmp_path))
    peers = one["peers"]
    assert [one["rank"] for one in peers] == [2, 1]  # by their peaks
    assert [one["step"] for one in peers] == [27, 28]
    assert [one["peak_bytes"] for one in peers] == [22 * GIB, 21 * GIB]
    assert [one["allocated_bytes"] for one in peers] == [22 * GIB, 21 * GIB]
    assert [one["ended"] for one in peers] == ["lost", "closed"]
    # 77 GiB against peers of 21 and 22.
    assert one["key"] == "imbalance"


def test_growth_of_the_recorded_steps_is_told_without_a_history(run, tmp_path):
    steps = np.arange(200)
    rank = run.rank(0)
    rank.steps(steps, allocated_peak_bytes=(17.0 + 0.3 * steps) * GIB)
    add_report(rank, step=200)
    rank.close()
    (one,) = errors_in(asked(tmp_path))
    assert one["key"] == "growth"
    growth = {e["key"]: e for e in one["evidence"]}["growth"]
    # What it rose by behind the warm-up, a tenth of the steps.
    assert growth["value"] == pytest.approx(54 * GIB, rel=0.02)
    assert "rise of the steps' peak" in growth["caveat"]


@pytest.mark.parametrize(
    ("late", "words"),
    [
        (0.5, "and 512 MiB per step in the last third"),
        (0.0, "but not in the last third"),
    ],
)
def test_growth_that_changed_lately_is_told_beside_the_whole(
    run, tmp_path, late, words
):
    steps = np.arange(200)
    early = np.minimum(steps, 120) * 0.2
    rank = run.rank(0)
    rank.steps(
        steps,
        allocated_peak_bytes=(17.0 + early + late * np.maximum(0, steps - 120)) * GIB,
    )
    add_report(rank, step=200)
    rank.close()
    (one,) = errors_in(asked(tmp_path))
    assert one["key"] == "growth"
    assert words in one["sentence"]
    lately = {e["key"]: e for e in one["evidence"]}["growth_late"]
    assert lately["value"] == pytest.approx(late * GIB, abs=1 << 20)
    assert "last third" in lately["scope"]


def test_a_message_alone_is_read(run, tmp_path):
    """What recorders before reports left: a note with the exception's text."""
    rank = run.rank(1)
    rank.note("oom", step=12, message=MESSAGE)
    rank.close(how="exception")
    (one,) = errors_in(asked(tmp_path))
    assert (one["rank"], one["step"], one["device"]) == (1, 12, 3)
    assert one["figures"]["requested"] == 2 * GIB
    assert one["figures"]["capacity"] == round(79.15 * GIB)
    assert one["message"] == MESSAGE
    asked_for = {e["key"]: e for e in one["evidence"]}["requested"]
    assert "rounds to two decimals" in asked_for["caveat"]


def test_the_note_of_a_report_is_its_message_and_no_error_of_its_own(run, tmp_path):
    rank = run.rank(0)
    add_report(rank, number=4)
    rank.note("oom", step=40, message="CUDA out of memory. It was rank 0.", report=4)
    rank.close()
    (one,) = errors_in(asked(tmp_path))
    assert one["message"] == "CUDA out of memory. It was rank 0."


def test_the_errors_own_text_comes_before_its_marks(run, tmp_path):
    """The observer marks the error before there is an exception to quote."""
    rank = run.rank(0)
    add_report(rank, number=1)
    ours = "out of memory on cuda:0: 2.00 GiB asked for, 1.00 GiB free"
    rank.note("oom_message", step=40, message="CUDA out of memory. Yes.", report=1)
    rank.note("oom", step=40, message=ours, report=1)
    rank.note("oom", step=41, message=ours.replace("2.00", "3.00"), report=None)
    rank.close()
    second, first = errors_in(asked(tmp_path))  # the one that may have ended it leads
    assert first["message"] == "CUDA out of memory. Yes."
    # Over the hourly budget of reports: its mark is all there is.
    assert (second["step"], second["device"]) == (41, 0)
    assert second["figures"]["requested"] == 3 * GIB
    assert second["figures"]["device_free"] == GIB


def test_the_first_error_comes_first_and_other_ends_last(run, tmp_path):
    """Rank 2 ran out first; rank 0 followed; rank 1 died of their silence."""
    for number, (origin, second) in enumerate(
        [("oom", 9), ("exception", 3), ("oom", 5)]
    ):
        rank = run.rank(number, world_size=3)
        memory = origin == "oom"
        error = None if memory else {"type": "RuntimeError", "message": "NCCL timeout"}
        add_report(
            rank,
            origin=origin,
            is_out_of_memory=memory,
            exception=error,
            entry={"time_ns": second * 10**9},
        )
        rank.close(how="exception")
    found = asked(tmp_path)
    assert [one["rank"] for one in errors_in(found)] == [2, 0, 1]
    assert found["num_errors"] == 2
    last = errors_in(found)[-1]
    assert last["is_out_of_memory"] is False
    assert last["sentence"].startswith("The process ended (NCCL timeout)")
    assert last["advice"] == []
    of_one = asked(tmp_path, rank=1)
    assert [one["rank"] for one in errors_in(of_one)] == [1]


def test_a_signal_is_an_end_of_its_own(run, tmp_path):
    rank = run.rank(0)
    add_report(rank, origin="signal", is_out_of_memory=False, signal="SIGTERM")
    rank.close()
    (one,) = errors_in(asked(tmp_path))
    assert one["origin"] == "signal"
    assert "SIGTERM" in one["sentence"]


def test_an_exception_that_says_nothing_of_memory_is_none_of_ours(run, tmp_path):
    rank = run.rank(0)
    error = {"type": "KeyError", "message": "3"}
    add_report(
        rank,
        origin="exception",
        is_out_of_memory=False,
        exception=error,
        memory=None,
        holders=None,
        tables={},
    )
    rank.close(how="exception")
    assert errors_in(asked(tmp_path)) == []


def test_a_report_of_anything_at_all_breaks_nothing(run, tmp_path):
    rank = run.rank(0)
    add_report(
        rank,
        tables={
            "stack": {"thread": np.array([0]), "name": np.array([3])},
            "holders": {"num_bytes": np.array([-1]), "num_blocks": ("x",)},
            "categories": {"category": np.array([99]), "num_bytes": np.array([1])},
        },
        memory=["not", "a", "dict"],
        requested_bytes="many",
        device_free_bytes=-1,
        device_total_bytes=1 << 200,
        device="zero",
        spans=[1, None, "<img src=x>"],
        exception=7,
        holders=3,
        allocator=None,
        origin="nobody",
        is_out_of_memory=True,
    )
    rank.close()
    (one,) = errors_in(asked(tmp_path))
    assert "requested" not in one["figures"]
    assert "capacity" not in one["figures"]
    assert one["key"] == "unsure"
    assert one["title"] in one["markdown"]


def test_a_damaged_report_leaves_the_note(run, tmp_path):
    rank = run.rank(0)
    before = rank.path.stat().st_size
    add_report(rank, number=1)
    rank.note("oom", step=40, message=MESSAGE)
    rank.close()
    flip_bit(rank.path, before + 200)
    found = asked(tmp_path)
    assert [one["message"] for one in errors_in(found)] == [MESSAGE]


def test_errors_of_many_ranks_are_bounded(run, tmp_path):
    for number in range(30):
        rank = run.rank(number, world_size=30)
        add_report(rank, entry={"time_ns": (100 - number) * 10**9})
        rank.close()
    found = asked(tmp_path)
    assert len(errors_in(found)) == 20
    assert found["num_errors"] == 30
    assert errors_in(found)[0]["rank"] == 29


def test_files_of_another_tool_are_judged_with_their_peers(tmp_path):
    case = oom_case("imbalance", 10_003)
    folder = tmp_path / "job"
    folder.mkdir()
    case.write(folder)
    (one,) = errors_in(asked(tmp_path, "job"))
    assert one["origin"] == "file"
    assert one["rank"] == case.label.rank
    assert one["key"] == "imbalance"
    assert len(one["peers"]) == len(case.ranks) - 1
    assert one["history"].startswith("f")


def test_a_file_that_is_none_leaves_the_others(tmp_path):
    folder = tmp_path / "job"
    folder.mkdir()
    oom_case("really_full", 10_004).write(folder)
    whole = next(folder.glob("*.pickle")).read_bytes()
    (folder / "rank7.pickle").write_bytes(whole[: len(whole) // 2])
    found = asked(tmp_path, "job")
    assert [one["key"] for one in errors_in(found)] == ["really_full"]
    (problem,) = found["problems"]
    assert problem["path"].endswith("rank7.pickle")


@pytest.mark.skipif(not CRASH.is_file(), reason="the recorded snapshots are not here")
def test_the_real_crash_in_one_sentence(tmp_path):
    folder = tmp_path / "crash"
    folder.mkdir()
    shutil.copy(CRASH, folder / "memory_snapshot.pickle")
    (one,) = errors_in(asked(tmp_path, "crash"))
    assert (one["device"], one["moment"]) == (1, 421)
    assert one["key"] == "really_full"
    assert one["sentence"] == (
        "An allocation of 4.94 GiB at models.py:181 update_nodes failed with 91.3 MiB"
        " free on the device: the device was full, if this was all of its memory;"
        " 78.3 GiB was live,"
        " 99.7 % of the 78.5 GiB that torch had or could get (a guess: a card of 80 GB);"
        " 94.7 % of that came from four source lines."
    )
    assert one["held_sentence"].endswith(
        "update_nodes in models.py, lines 174, 181, 176 and 178."
    )
