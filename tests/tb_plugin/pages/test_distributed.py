"""The routes of ranks beside each other, also where traces or steps of them are missing."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from tests.kineto_files import KinetoFile, trained
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.profiled import ask, columns_of, findings_of
from tests.tb_plugin.planted_stragglers import Training


def notes_of(table, key: str) -> list[str]:
    (column,) = (one for one in table["columns"] if one["key"] == key)
    return column["notes"]


@pytest.mark.parametrize(
    ("ranks", "missing"),
    [
        ((0,), "1 of 3 ranks has a trace here; ranks 1 and 2 have none."),
        ((2,), "1 of 3 ranks has a trace here; ranks 0 and 1 have none."),
        ((0, 2), "2 of 3 ranks have a trace here; rank 1 has none."),
    ],
)
def test_where_ranks_have_no_trace_waiting_is_not_known(tmp_path, ranks, missing):
    for rank in ranks:
        made = trained(rank, 3, 0 if rank else 150)
        made.write(tmp_path / "exp" / f"host_{rank}.1.pt.trace.json")
    answer = ask(Page(tmp_path), "distributed")
    own, table, groups = (
        columns_of(answer[name]) for name in ("ranks", "collectives", "groups")
    )
    for unknown in (
        own["transfer_ms"],
        own["waiting_ms"],
        table["transfer_ms"],
        table["bus_bytes_per_second"],
        table["lead_seconds"],
        groups["mean_skew_ms"],
        groups["max_skew_ms"],
    ):
        assert np.isnan(unknown).all()
    assert notes_of(answer["collectives"], "lead_seconds") == ["0 of 3 calls"] * len(
        ranks
    )
    assert (table["total_ms"] > 0).all()
    assert missing in answer["summary"]
    assert "all their ranks show" not in answer["summary"]
    assert answer["sentence"].startswith("A step takes ")
    assert answer["findings"] == []


def test_a_rank_without_the_step_that_is_chosen_waited_for_an_unknown_time(tmp_path):
    for rank in range(2):
        made = trained(rank, 2, 150)
        if rank == 1:
            made.events = [
                one for one in made.events if one["name"] != "ProfilerStep#7"
            ]
        made.write(tmp_path / "exp" / f"host_{rank}.1.pt.trace.json")
    answer = ask(Page(tmp_path), "distributed", step=7)
    own = columns_of(answer["ranks"])
    assert np.isnan(own["step_ms"]).tolist() == [False, True]
    assert np.isnan(own["waiting_ms"]).tolist() == [False, True]


def test_ranks_beside_each_other(tmp_path):
    for rank, wait_us in ((0, 150), (1, 120), (2, 0)):
        for cycle in (100, 200):
            made = trained(rank, 3, wait_us)
            made.write(tmp_path / "exp" / f"host_{rank}.{cycle}.pt.trace.json")
    page = Page(tmp_path)
    answer = ask(page, "distributed")
    own = columns_of(answer["ranks"])
    assert own["rank"].tolist() == [0, 1, 2]
    assert (answer["cycle"], answer["num_traces"]) == (2, 3)
    parts = ("computation_ms", "overlap_ms", "communication_ms", "other_ms")
    assert sum(own[name] for name in parts) == pytest.approx(own["step_ms"])
    assert own["transfer_ms"].tolist() == pytest.approx([0.2] * 3)
    assert own["waiting_ms"].tolist() == pytest.approx([0.15, 0.12, 0])
    table = columns_of(answer["collectives"])
    assert table["rank"].tolist() == [0, 1, 2]
    # Rank 2 waits for nobody, and the others 150 and 120 us in each of three calls.
    assert table["lead_seconds"] * 1e6 == pytest.approx([-270, -135, 405])
    assert set(table["kind"]) == {"all_reduce"}
    assert table["num_bytes"].tolist() == [12_000] * 3
    assert table["mean_ms"].tolist() == pytest.approx([0.35, 0.32, 0.2])
    assert notes_of(answer["collectives"], "group") == ["3 ranks"] * 3
    assert notes_of(answer["collectives"], "lead_seconds") == [""] * 3
    assert answer["sentence"].startswith(
        "Rank 2 is the straggler of cycle 2. A step takes "
    )
    (finding,) = answer["findings"]
    # Ranks 0 and 1 wait 135 us in the mean, in each of the steps.
    assert "135 µs per step" in finding["sentence"]
    assert answer["summary"] == (
        "3 ranks; 3 collectives that all their ranks show. Exposed communication of "
        "a step: 200 µs (rank 2) to 350 µs (rank 0), median 320 µs."
    )
    groups = columns_of(answer["groups"])
    assert (groups["kind"], groups["group"]) == (["all_reduce"], ["0"])
    assert (groups["num_ranks"].tolist(), groups["num_matched"].tolist()) == ([3], [3])
    assert groups["mean_skew_ms"].tolist() == pytest.approx([0.15])
    assert "no trace" not in answer["summary"]
    one = ask(page, "distributed", step=6)
    own = columns_of(one["ranks"])
    assert (one["step"], own["rank"].tolist()) == (6, [0, 1, 2])
    assert own["transfer_ms"].tolist() == pytest.approx([0.2] * 3)
    assert own["waiting_ms"].tolist() == pytest.approx([0.15, 0.12, 0])
    none = ask(page, "distributed", step=4)
    assert none["step"] is None
    assert "Step 4 is none of those profiled." in none["summary"]
    some = ask(page, "distributed", ranks="0,2")
    assert np.isnan(columns_of(some["ranks"])["waiting_ms"]).all()
    assert "rank 1 has none." in some["summary"]
    first = ask(page, "distributed", cycle=1)
    assert first["cycle"] == 1


def test_times_of_ranks_are_means_of_their_single_steps(tmp_path):
    Training(4, noise=0.4, pause={2: 900.0}).write(tmp_path / "exp")
    for rank in range(4):  # and one that lies in no step
        path = tmp_path / "exp" / f"host_{rank}.1.pt.trace.json"
        told = json.loads(path.read_text())
        (last,) = (
            event for event in told["traceEvents"] if event["name"] == "ProfilerStep#10"
        )
        last["name"] = "after"
        path.write_text(json.dumps(told))
    page = Page(tmp_path)
    answer = ask(page, "distributed")
    whole = columns_of(answer["ranks"])
    single = [
        columns_of(ask(page, "distributed", step=step)["ranks"])
        for step in answer["steps"].tolist()
    ]
    assert len(single) == 5
    for key, values in whole.items():
        mean = np.mean([columns[key] for columns in single], axis=0)
        assert mean == pytest.approx(values), key
    waited = whole["waiting_ms"] + whole["transfer_ms"]
    talked = whole["communication_ms"] + whole["overlap_ms"]
    assert waited == pytest.approx(talked)


@pytest.mark.parametrize("num_ranks", [2, 3, 4])
def test_a_usual_step_is_none_of_the_straggler(tmp_path, num_ranks):
    """All steps take equally long: the straggler's may well be in the middle of them."""
    for late_rank in range(num_ranks):
        logdir = tmp_path / str(late_rank)
        Training(num_ranks, compute={late_rank: 4_000.0}).write(logdir / "exp")
        sentence = ask(Page(logdir), "distributed")["sentence"]
        assert f"Rank {late_rank} is the straggler. " in sentence
        # It computes for 13 ms.
        assert re.search(r"computation (8\.9|9\.0)\d ms", sentence)


def cells_of(answer) -> np.ndarray:
    """Rows of ranks, columns of steps; NaN where there is nothing."""
    cells = answer
    codes = np.asarray(cells["values"], np.float64).reshape(cells["num_rows"], -1)
    low, high = cells["value_low"], cells["value_high"]
    return np.where(codes == 0, np.nan, low + (codes - 1) / 65534 * (high - low))


def test_ranks_by_profiled_steps_as_a_picture(tmp_path):
    for rank, wait_us in ((0, 150), (1, 120), (2, 0), (7, 300)):
        made = trained(rank, 8, wait_us)
        made.write(tmp_path / "exp" / f"host_{rank}.100.pt.trace.json")
    page = Page(tmp_path)
    cells = answer = ask(page, "distributed_heatmap")
    assert answer["series"]["label"] == "Communication"
    assert cells["row_rank"].tolist() == [0, 1, 2, 7]
    assert (cells["x0"], cells["steps_per_column"], cells["num_columns"]) == (5, 1, 3)
    assert cells["series"]["unit"] == "seconds"
    waits = np.array([350e-6, 320e-6, 200e-6, 500e-6])
    assert cells_of(answer) == pytest.approx(np.tile(waits[:, None], 3), rel=1e-4)
    parts = [
        cells_of(ask(page, "distributed_heatmap", part=part))
        for part in ("computation", "overlap", "communication", "other")
    ]
    # Three equal steps of each rank: a fiftieth of the usual time is noise.
    assert answer["noise"] == pytest.approx(0.02 * 335e-6)
    steps = cells_of(ask(page, "distributed_heatmap", part="step"))
    assert sum(parts) == pytest.approx(steps, rel=1e-4)
    zoomed = ask(page, "distributed_heatmap", x0=6, x1=7, ranks="1-7", px=1, rows=2)
    assert zoomed["row_rank"].tolist() == [1, 7]
    assert zoomed["steps_per_column"] == 2
    # Of ranks 1 and 2 the one farther from the middle: who waits least came last.
    assert cells_of(zoomed) == pytest.approx(np.array([[200e-6], [500e-6]]), rel=1e-4)


def rank_that_is_late(folder, took_us) -> Page:
    """Twelve collectives of three ranks; `took_us(rank, number)` is the time of each."""
    for rank in range(3):
        made = KinetoFile(rank, 3)
        made.device()
        made.step(1, 0, 10_000)
        for at in range(12):
            name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
            made.kernel(name, at * 700, at * 700 + 50, took_us(rank, at))
        made.write(folder / "exp" / f"host_{rank}.1.pt.trace.json")
    return Page(folder)


def late(rank: int, _at: int) -> int:
    return 100 if rank == 1 else 600


@pytest.mark.parametrize(
    "took_us",
    [
        lambda rank, at: 100 if rank == at % 3 else 600,
        lambda rank, at: 100 if rank == 1 else 120,
    ],
    ids=["each waits in turn", "it costs next to nothing"],
)
def test_such_a_last_rank_is_no_straggler(tmp_path, took_us):
    page = rank_that_is_late(tmp_path, took_us)
    assert ask(page, "distributed")["findings"] == []


def test_a_rank_that_others_wait_for_is_found(tmp_path):
    page = rank_that_is_late(tmp_path, late)
    (finding,) = ask(page, "distributed")["findings"]
    assert finding["key"] == "late_rank"
    assert "Rank 1" in finding["sentence"]
    assert finding in findings_of(page)


def test_the_overview_looks_at_the_ranks_of_a_small_cycle_by_itself(
    tmp_path, monkeypatch
):
    def straggles(page: Page) -> bool:
        return "late_rank" in {finding["key"] for finding in findings_of(page)}

    page = rank_that_is_late(tmp_path, late)
    assert straggles(page)
    # Of large ones only what was looked at already counts.
    monkeypatch.setattr("memboard.tb_plugin.facts.traces.cycle_ranks.MAX_BESIDE", 10)
    page = Page(tmp_path)
    assert not straggles(page)
    assert page.plugin.state().traces.sources.num_ended == 0
    ask(page, "distributed")
    assert straggles(page)
