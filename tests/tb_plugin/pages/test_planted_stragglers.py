"""The rank that the others wait for is named where one was planted, and nowhere else."""

from __future__ import annotations

import itertools

import pytest

from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.profiled import (
    ask,
    findings_of,
    is_of_straggler,
    straggler_of,
)
from tests.tb_plugin.planted_stragglers import Training
from tests.tb_plugin.step_runs import Story, write

LATE_US = 4_000.0
FEW_AND_MANY = (2, 3, 4, 8, 64)
PART_TEXT = {
    "load": "the wait for the dataloader",
    "compute": "computation",
    "pause": "work outside operators",
}


def straggler_in(folder, training: Training) -> int | None:
    training.write(folder / "exp")
    page = Page(folder)
    rank = straggler_of(page)
    if rank is None:
        sentence = ask(page, "distributed")["sentence"]
        assert sentence.startswith("No rank stands out. ")
    return rank


@pytest.mark.parametrize("num_ranks", FEW_AND_MANY)
@pytest.mark.parametrize("planted", PART_TEXT)
def test_the_planted_straggler_is_named_with_its_part(tmp_path, planted, num_ranks):
    late = num_ranks * 2 // 3
    training = Training(num_ranks, seed=num_ranks, **{planted: {late: LATE_US}})
    assert straggler_in(tmp_path, training) == late
    (finding,) = ask(Page(tmp_path), "distributed")["findings"]
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
        assert straggler_in(tmp_path / str(seed), training) is None


def test_who_comes_last_most_often_is_not_blamed_for_what_costs_nothing(tmp_path):
    training = Training(
        4, num_small=9, late_for_small={0: 6.0}, pause={1: LATE_US}, noise=0.0
    )
    assert straggler_in(tmp_path, training) == 1
    alone = Training(4, num_small=9, late_for_small={0: 6.0}, noise=0.0)
    assert straggler_in(tmp_path / "alone", alone) is None


def test_who_is_late_because_it_waited_itself_is_not_blamed(tmp_path):
    """Rank 1 delays rank 0 in their pair; both then delay the ranks of the other pair."""
    pairs, rows = [[0, 1], [2, 3]], [[0, 2], [1, 3]]
    training = Training(4, groups=[pairs, rows, rows], compute={1: 3 * LATE_US})
    assert straggler_in(tmp_path, training) == 1


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
    assert straggler_in(tmp_path, training) is None


def test_all_pages_name_the_rank_of_the_recorded_steps(tmp_path):
    """Of 60 steps rank 3 is the straggler; a few that were traced tell of another."""

    def more(rank: int, step: int) -> dict[str, float]:
        return {"dataloader": 38.0} if rank == 3 else {}

    write(tmp_path / "exp", Story(4, 60, in_step=True, more=more).tell())
    Training(4, compute={1: LATE_US}).write(tmp_path / "exp")
    page = Page(tmp_path)
    assert straggler_of(page) == 3
    findings = page.of_run("/stragglers", "exp")["findings"]
    named = [finding for finding in findings if is_of_straggler(finding)]
    assert named == ask(page, "distributed")["findings"]


def test_a_rank_s_own_findings_name_it_alone_as_the_straggler(tmp_path):
    Training(4, compute={1: LATE_US}).write(tmp_path / "exp")
    page = Page(tmp_path)
    (finding,) = filter(is_of_straggler, findings_of(page))
    for rank in range(4):
        findings = page.of_run("/findings", "exp", rank=rank)["findings"]
        assert (finding in findings) == (rank == 1)


def test_of_several_cycles_it_is_said_which_one_names_a_rank(tmp_path):
    Training(4, compute={1: LATE_US}).write(tmp_path / "exp", cycle=1)
    Training(4, compute={2: LATE_US}).write(tmp_path / "exp", cycle=2)
    Training(4).write(tmp_path / "exp", cycle=3)
    page = Page(tmp_path)
    sentences = {
        cycle: ask(page, "distributed", cycle=cycle)["sentence"] for cycle in (1, 2, 3)
    }
    assert sentences[1].startswith("Rank 1 is the straggler of cycle 1. ")
    assert sentences[2].startswith("Rank 2 is the straggler of cycle 2. ")
    assert sentences[3].startswith("No rank stands out in cycle 3. ")
    (finding,) = ask(page, "distributed", cycle=2)["findings"]
    assert "wait for rank 2 in cycle 2:" in finding["sentence"]
    # Without a choice, and for Overview, the newest cycle counts.
    assert ask(page, "distributed")["sentence"] == sentences[3]
    assert not any(map(is_of_straggler, findings_of(page)))
