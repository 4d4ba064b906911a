"""Histories are listed again and again: what did not change is not looked at again."""

from __future__ import annotations

from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.index.history_list import listed
from memboard.tb_plugin.index.listing import FoundRun
from memboard.tb_plugin.index.run import Run
from tests.builders import START_NS


def take(rank, label: str, at_ms: int) -> None:
    rank.capture(
        "history",
        function="",
        iteration=0,
        label=label,
        time_ns=START_NS + at_ms * 10**6,
        tables={},
    )


class Listing:
    """One run, listed as the server does it."""

    def __init__(self, builder) -> None:
        folder, parent = str(builder.files), str(builder.folder)
        self.found = FoundRun.recorded("id", "exp", folder, "exp", parent)
        self.run = Run(self.found)

    def __call__(self, rank: int | None = None, budget: Budget | None = None):
        self.found.list_files()
        with self.run.lock:
            self.run.update(Budget(60.0))
            found = listed(self.run, budget or Budget(60.0), rank)
        return [one.reference.label for one in found]


def test_what_did_not_change_is_listed_as_it_was(run):
    ranks = [run.rank(rank, world_size=3) for rank in range(3)]
    for number, rank in enumerate(ranks[:2]):
        take(rank, f"of {number}", 10 - number)
    listing = Listing(run)
    assert listing() == ["of 1", "of 0"]
    first = listing.run.histories.all(listing.run, Budget(60.0))
    take(ranks[2], "of 2", 5)
    assert listing() == ["of 2", "of 1", "of 0"]
    assert listing() == ["of 2", "of 1", "of 0"]
    assert listing(rank=2) == ["of 2"]
    later = listing.run.histories.all(listing.run, Budget(60.0))
    assert later[-1] is first[-1]
    assert later is listing.run.histories.all(listing.run, Budget(60.0))


def test_a_digest_and_the_end_of_a_file_change_nothing_of_what_is_listed(run):
    rank = run.rank(0)
    listing = Listing(run)
    for number in range(6):
        take(rank, f"{number}", number)
        if number % 2:
            rank.digest()
        assert listing() == [f"{at}" for at in range(number + 1)]
    rank.close()
    assert listing() == [f"{at}" for at in range(6)]


def test_what_the_budget_left_out_is_looked_at_the_next_time(run):
    rank = run.rank(0)
    for number in range(3):
        take(rank, f"{number}", number)
        rank.digest()
    take(rank, "last", 9)
    rank.close()
    listing = Listing(run)
    spent = Budget(0.0)
    cut_short = listing(budget=spent)
    assert len(cut_short) < 4
    assert spent.exhausted
    assert listing() == ["0", "1", "2", "last"]
    assert listing(budget=Budget(0.0)) == ["0", "1", "2", "last"]


def test_a_file_that_was_written_anew_is_another(run):
    rank = run.rank(0)
    take(rank, "before", 1)
    listing = Listing(run)
    assert listing() == ["before"]
    rank.path.unlink()
    assert listing() == []
    take(run.rank(0), "after", 1)
    assert listing() == ["after"]
