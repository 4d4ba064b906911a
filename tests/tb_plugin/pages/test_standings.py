"""How the list of runs says a run stands: "fine" is the absence of findings."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.tb_plugin.analysis.ranks.stragglers import stragglers as compared_ranks
from memboard.tb_plugin.facts.findings.run_findings import RunFindings
from memboard.tb_plugin.facts.ranks import standings
from memboard.tb_plugin.facts.steps import stragglers as stragglers_module
from tests.builders import RunBuilder, age
from tests.tb_plugin.client import Page, answered
from tests.tb_plugin.test_run import Steps

GIB = 1 << 30
STEPS = np.arange(120)


def recorded(
    folder,
    *,
    slow=1.0,
    num_ranks=8,
    ends=True,
    load=None,
    stolen=None,
    old=True,
    **header,
) -> Page:
    """Ranks of one memory; the last takes `slow` times as long for its steps."""
    builder = RunBuilder(folder / "run")
    for number in range(num_ranks):
        rank = builder.rank(number, world_size=num_ranks, **header)
        took = 0.1 * (slow if number == num_ranks - 1 else 1.0)
        rank.steps(
            STEPS,
            allocated_peak_bytes=np.full(len(STEPS), 10 * GIB),
            step_time_seconds=np.full(len(STEPS), took) * (1 + STEPS % 3 / 1000),
        )
        if number == 0 and (load is not None or stolen is not None):
            rank.rows(
                "cpu",
                STEPS,
                cpu_runnable_pct=np.full(len(STEPS), load or 0.0),
                cpu_steal_pct=np.full(len(STEPS), stolen or 0.0),
            )
        if ends:
            rank.close()
    if old:
        age(folder)
    return Page(folder)


def standing(page: Page) -> tuple[str | None, str]:
    """Status and finding of the only run, once it is known."""

    def ask():
        (one,) = page.get("/runs")["standings"]
        return one["status"], one["finding"]

    return answered(ask, lambda one: one[0] is not None)


def keys(page: Page) -> set[str]:
    """Findings about times."""
    found = page.of_run("/findings", "run")["findings"]
    return {one["key"] for one in found if one["key"] in ("straggler", "overloaded")}


def test_a_run_without_findings_is_fine(tmp_path):
    page = recorded(tmp_path)
    assert standing(page) == ("fine", "")
    assert keys(page) == set()


def test_a_run_with_a_straggler_is_not_fine(tmp_path):
    page = recorded(tmp_path, slow=1.35)
    assert standing(page) == ("warned", "Straggler")
    assert keys(page) == {"straggler"}


def test_a_file_that_is_being_written_is_not_fine(tmp_path):
    import time

    from memboard.collector.format.records import ClockAnchor

    now = time.time_ns()
    started = ClockAnchor(wall_ns=now, monotonic_ns=0)
    page = recorded(tmp_path, ends=False, old=False, started=started, start_ns=now)
    assert standing(page)[0] == "live"


def test_a_run_of_which_one_rank_has_ended_is_not_fine(tmp_path):
    import time

    from memboard.collector.format.records import ClockAnchor

    now = time.time_ns()
    started = ClockAnchor(wall_ns=now, monotonic_ns=0)
    builder = RunBuilder(tmp_path / "run")
    for number in range(2):
        rank = builder.rank(number, world_size=2, started=started, start_ns=now)
        rank.steps(STEPS, allocated_peak_bytes=np.full(len(STEPS), 10 * GIB))
        if number == 0:
            rank.close()
    assert standing(Page(tmp_path))[0] == "live"


def test_a_peak_stays_while_what_was_written_since_is_read(tmp_path, monkeypatch):
    page = recorded(tmp_path, num_ranks=2)
    assert standing(page) == ("fine", "")

    def peak() -> float | None:
        (one,) = page.get("/runs")["standings"]
        return one["peak_bytes"] and one["peak_bytes"] / GIB

    assert peak() == 10
    monkeypatch.setattr("memboard.tb_plugin.server.state.STANDING_SECONDS", -1.0)
    more = RunBuilder(tmp_path / "run").rank(2, world_size=3)
    more.steps(STEPS, allocated_peak_bytes=np.full(len(STEPS), 12 * GIB))
    more.close()
    age(tmp_path)
    answered(lambda: page.get("/runs")["runs"], lambda runs: runs[0]["num_ranks"] == 3)
    assert peak() == 10
    monkeypatch.undo()
    assert answered(peak, lambda size: size != 10) == 12


def test_a_peak_of_an_earlier_look_is_not_taken_for_that_of_a_later_one(
    tmp_path, monkeypatch
):
    rank = RunBuilder(tmp_path / "run").rank(0, world_size=1)
    rank.steps(STEPS, allocated_peak_bytes=np.full(len(STEPS), 10 * GIB))
    page = Page(tmp_path)

    def peak() -> float | None:
        (one,) = page.get("/runs")["standings"]
        return one["peak_bytes"] and one["peak_bytes"] / GIB

    answered(peak, lambda size: size == 10)
    monkeypatch.setattr("memboard.tb_plugin.server.state.STANDING_SECONDS", -1.0)
    more = STEPS + len(STEPS)
    rank.steps(more, allocated_peak_bytes=np.full(len(more), 12 * GIB))
    age(tmp_path)
    answered(
        lambda: page.get("/runs")["runs"][0]["last_step"],
        lambda step: step == more[-1],
    )
    assert peak() == 10
    monkeypatch.undo()
    assert answered(peak, lambda size: size != 10) == 12


def large(tmp_path) -> tuple[Page, list]:
    builder = RunBuilder(tmp_path / "run")
    ranks = [builder.rank(number, world_size=70) for number in range(70)]
    for rank in ranks:
        rank.steps(STEPS, allocated_peak_bytes=np.full(len(STEPS), 10 * GIB))
    return Page(tmp_path), ranks


def test_a_large_run_is_followed_while_nobody_opens_it(tmp_path):
    page, ranks = large(tmp_path)

    def peak() -> float | None:
        (one,) = page.get("/runs")["standings"]
        return one["peak_bytes"] and one["peak_bytes"] / GIB

    assert answered(peak, lambda size: size is not None) == 10
    more = STEPS + len(STEPS)
    ranks[33].steps(more, allocated_peak_bytes=np.full(len(more), 12 * GIB))
    assert answered(peak, lambda size: size != 10) == 12


def several(tmp_path) -> Page:
    """Runs that are fine, two with a straggler, a large, an overloaded, a damaged one."""
    for number in range(12):
        slow = 1.35 if number in (3, 8) else 1.0
        recorded(tmp_path / f"run{number:02}", slow=slow, num_ranks=3)
    recorded(tmp_path / "a large one", num_ranks=70, slow=1.35)
    recorded(tmp_path / "overloaded", num_ranks=2, load=260.0)
    recorded(tmp_path / "damaged", num_ranks=2)
    (first, *_) = sorted((tmp_path / "damaged").rglob("*.events"))
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 1
    first.write_bytes(data)
    age(tmp_path)
    return Page(tmp_path)


def statuses(page: Page) -> dict[str, str | None]:
    answer = page.get("/runs")
    names = {run["id"]: run["name"].partition("/")[0] for run in answer["runs"]}
    return {names[one["run"]]: one["status"] for one in answer["standings"]}


def test_each_poll_decides_some_runs_until_all_are_and_then_none(tmp_path, monkeypatch):
    num_judged = 0
    verdict = RunFindings.verdict

    def counted(self, run, summary, budget):
        nonlocal num_judged
        num_judged += 1
        return verdict(self, run, summary, budget)

    monkeypatch.setattr(RunFindings, "verdict", counted)
    # A machine so slow that a look decides one run, or not even a large one.
    monkeypatch.setattr("memboard.tb_plugin.server.state.STANDING_SECONDS", 0.01)
    monkeypatch.setattr(standings, "SECONDS", 0.01)
    page = several(tmp_path)
    undecided = {"overloaded", "damaged"}
    found = answered(
        lambda: statuses(page),
        lambda by_run: {run for run in by_run if by_run[run] is None} == undecided,
    )
    late = {run for run in found if found[run] == "warned"}
    assert late == {"run03", "run08", "a large one"}
    monkeypatch.undo()
    monkeypatch.setattr(RunFindings, "verdict", counted)
    for _ in range(3):
        statuses(page)
    num_judged = 0
    assert statuses(page) == found
    assert num_judged == 0


def test_the_ranks_of_a_run_are_compared_once_for_all_pages(tmp_path, monkeypatch):
    num_compared = 0

    def counted(times):
        nonlocal num_compared
        num_compared += 1
        return compared_ranks(times)

    monkeypatch.setattr(stragglers_module, "stragglers", counted)
    page = recorded(tmp_path, slow=1.35)
    assert standing(page) == ("warned", "Straggler")
    num_before = num_compared
    assert num_before >= 1
    (of_steps,) = page.of_run("/stragglers", "run")["findings"]
    for _ in range(2):
        findings = page.of_run("/findings", "run")["findings"]
        assert of_steps in findings
        assert of_steps["markdown"].startswith("## Straggler; rank 7")
        page.get("/runs")
    assert num_compared == num_before


def test_a_look_begins_where_the_one_before_ended(tmp_path, monkeypatch):
    """Also where the first runs are read anew at each of them, as live ones are."""
    page = several(tmp_path)
    looked: list[str] = []

    def never(_self, run, _summary, _budget):
        looked.append(run.found.name)

    monkeypatch.setattr(RunFindings, "verdict", never)
    monkeypatch.setattr(standings, "Budget", lambda _: Steps(20))
    for _ in range(40):
        statuses(page)
    assert set(looked) == {"a large one/run", "overloaded/run"} | {
        f"run{number:02}/run" for number in range(12)
    }


def test_one_poll_reads_only_so_much_of_a_large_run(tmp_path, monkeypatch):
    monkeypatch.setattr("memboard.tb_plugin.server.state.FOLLOW_SECONDS", -1.0)
    page, _ = large(tmp_path)
    for num_polls in range(4):
        page.get("/runs")
        assert len(page.store.run(page.run_id("run")).files) <= 2 + 2 * num_polls + 1


def test_a_run_with_a_damaged_file_is_not_fine(tmp_path):
    page = recorded(tmp_path)
    (first, *_) = sorted(tmp_path.rglob("*.events"))
    first.write_bytes(first.read_bytes()[:-40])
    age(tmp_path)
    for _ in range(5):
        (one,) = Page(tmp_path).get("/runs")["standings"]
        assert one["status"] != "fine"
    assert page is not None


def test_times_of_a_virtual_gpu_are_no_findings(tmp_path):
    page = recorded(tmp_path, slow=1.35, virtual_gpu="virtual H100 80GB")
    assert standing(page) == ("fine", "")
    assert keys(page) == set()
    stragglers = page.of_run("/stragglers", "run")
    assert stragglers["late"] == []


@pytest.mark.parametrize(
    ("load", "stolen", "words"),
    [
        (260.0, 0.0, "2.6 threads a processor ran or waited"),
        (50.0, 18.0, "18 % of its processors' time was stolen"),
        (300.0, 30.0, "30 % of its processors' time was stolen and 3.0 threads"),
    ],
)
def test_times_of_an_overloaded_machine_are_no_findings(tmp_path, load, stolen, words):
    page = recorded(tmp_path, slow=1.35, load=load, stolen=stolen)
    assert keys(page) == {"overloaded"}
    found = page.of_run("/findings", "run")["findings"]
    (one,) = (one for one in found if one["key"] == "overloaded")
    assert words in one["sentence"]
    assert one["severity"] == "info"
    # Nobody can say that nothing is wrong: the run has no status.
    (row,) = page.get("/runs")["standings"]
    assert (row["status"], row["finding"]) == (None, "")


def test_a_busy_machine_that_is_not_overloaded_keeps_its_findings(tmp_path):
    page = recorded(tmp_path, slow=1.35, load=150.0, stolen=3.0)
    assert keys(page) == {"straggler"}
