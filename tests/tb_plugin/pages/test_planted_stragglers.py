"""The rank that the others wait for is named where one was planted, and nowhere else."""

from __future__ import annotations

import itertools

import pytest

from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.profiled import ask
from tests.tb_plugin.planted_stragglers import COMPUTING_US, LOADING_US, Training
from tests.tb_plugin.step_runs import Story, write

LATE_US = 4_000.0
FEW_AND_MANY = (2, 3, 4, 8, 64)
PART_TEXT = {
    "load": "the wait for the dataloader",
    "compute": "computation",
    "pause": "work outside operators",
}


def distributed_of(folder, training: Training):
    training.write(folder / "exp")
    return ask(Page(folder), "distributed")


def straggler_of(answer) -> int | None:
    """The rank that the page names, in its heading and in its finding."""
    for finding in answer["findings"]:
        assert answer["sentence"].startswith(
            f"Rank {finding['rank']} is the straggler. "
        )
        return finding["rank"]
    assert answer["sentence"].startswith("No rank stands out. ")
    return None


@pytest.mark.parametrize("num_ranks", FEW_AND_MANY)
@pytest.mark.parametrize("planted", PART_TEXT)
def test_the_planted_straggler_is_named_with_its_part(tmp_path, planted, num_ranks):
    late = num_ranks * 2 // 3
    training = Training(num_ranks, seed=num_ranks, **{planted: {late: LATE_US}})
    answer = distributed_of(tmp_path, training)
    assert straggler_of(answer) == late
    (finding,) = answer["findings"]
    assert f"Rank {late} takes longer in {PART_TEXT[planted]}." in finding["sentence"]
    evidence = {number["key"]: number["value"] for number in finding["evidence"]}
    # Noise of some 60 us on each part comes with it.
    assert evidence["waiting"] == pytest.approx(LATE_US / 1e6, rel=0.1)
    assert evidence["excess"] == pytest.approx(LATE_US / 1e6, rel=0.1)
    if planted == "pause":
        assert "mostly in all_gather" in finding["sentence"]


@pytest.mark.parametrize("num_ranks", FEW_AND_MANY)
def test_where_nobody_is_late_nobody_is_named(tmp_path, num_ranks):
    for seed in range(2 if num_ranks > 8 else 5):
        training = Training(num_ranks, seed=seed, noise=0.1)
        assert straggler_of(distributed_of(tmp_path / str(seed), training)) is None


def test_who_comes_last_most_often_is_not_blamed_for_what_costs_nothing(tmp_path):
    training = Training(
        4, num_small=9, late_for_small={0: 6.0}, pause={1: LATE_US}, noise=0.0
    )
    assert straggler_of(distributed_of(tmp_path, training)) == 1
    alone = Training(4, num_small=9, late_for_small={0: 6.0}, noise=0.0)
    assert straggler_of(distributed_of(tmp_path / "alone", alone)) is None


def test_who_is_late_because_it_waited_itself_is_not_blamed(tmp_path):
    """Rank 1 delays rank 0 in their pair; both then delay the ranks of the other pair."""
    pairs, rows = [[0, 1], [2, 3]], [[0, 2], [1, 3]]
    training = Training(4, groups=[pairs, rows, rows], compute={1: 3 * LATE_US})
    assert straggler_of(distributed_of(tmp_path, training)) == 1


def test_a_rank_that_is_late_once_does_not_stand_out(tmp_path):
    """Each is late in a step of its own: that is the noise of the steps."""
    late_in = itertools.cycle(range(3))

    class Alternating(dict):
        def get(self, rank, default=0):
            # Asked of each rank in turn, once a step.
            if rank == 0:
                self.late = next(late_in)
            return LATE_US if rank == self.late else default

    training = Training(3, num_steps=9, pause=Alternating())
    assert straggler_of(distributed_of(tmp_path, training)) is None


def test_the_profile_of_a_trace_names_the_same_rank_and_figure(tmp_path):
    training = Training(4, load={2: 3 * LOADING_US + COMPUTING_US})
    training.write(tmp_path / "exp")
    page = Page(tmp_path)
    (finding,) = ask(page, "distributed")["findings"]
    assert finding in ask(page, "profile")["findings"]


def test_all_pages_name_the_rank_of_the_recorded_steps(tmp_path):
    """Of 60 steps rank 3 is the straggler; a few that were traced tell of another."""

    def more(rank: int, step: int) -> dict[str, float]:
        return {"dataloader": 38.0} if rank == 3 else {}

    write(tmp_path / "exp", Story(4, 60, in_step=True, more=more).tell())
    Training(4, compute={1: LATE_US}).write(tmp_path / "exp")
    page = Page(tmp_path)
    answer = ask(page, "distributed")
    assert straggler_of(answer) == 3
    for route in ("findings", "stragglers"):
        findings = page.of_run(f"/{route}", "exp")["findings"]
        named = [one for one in findings if one["title"] == "Straggler"]
        assert named == answer["findings"], route
    titles = {finding["title"] for finding in ask(page, "profile")["findings"]}
    assert "Straggler" not in titles
