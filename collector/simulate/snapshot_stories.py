"""How each kind of out-of-memory error comes about, from the first step to the last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collector.simulate.allocator_settings import MIB
from collector.simulate.snapshot_rank import SimulatedRank, make_machine, tokens_for
from collector.simulate.stats import ACTIVE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np

    from collector.simulate.snapshot_label import OomCause


class Story:
    """One draw: the ranks, and what happens to them until one fails."""

    def __init__(
        self, cause: OomCause, also: OomCause | None, random: np.random.Generator
    ) -> None:
        self.cause = cause
        self.also = also
        self.random = random
        pinned = cause in ("fragmented", "fitting_block_free") or also == "fragmented"
        expandable = not pinned and bool(random.random() < 0.5)
        self.machine = make_machine(random, expandable=expandable)
        self.total = self.machine.total_bytes - self.machine.context_bytes
        several = cause == "imbalance" or random.random() < 0.3
        num_ranks = int(random.integers(3, 6)) if several else 1
        self.victim = int(random.integers(0, num_ranks))
        self.num_steps = int(random.integers(3, 6))
        self.planted: dict[str, int] = {}
        seeds = random.integers(0, 2**31, num_ranks).tolist()
        self.ranks = [SimulatedRank(self.machine, one) for one in seeds]

    def share(self, low: float, high: float) -> int:
        """So much of the device, drawn between two shares."""
        return int(self.random.uniform(low, high) * self.total)

    def tokens(self, low: float, high: float) -> int:
        """Tokens of a batch whose step peaks between two shares of the device."""
        return tokens_for(self.machine, self.share(low, high))

    def note(self, rank: SimulatedRank, cause: OomCause, num_bytes: int) -> None:
        """Count what a cause took, if it took it from the rank that will fail."""
        if rank is self.ranks[self.victim]:
            self.planted[cause] = self.planted.get(cause, 0) + num_bytes

    def leak_site(self) -> str:
        """Which line keeps too much."""
        sites = ("kept outputs", "feature cache")
        return sites[int(self.random.integers(0, len(sites)))]


def _warm_up(story: Story, tokens: int) -> None:
    """Steps of all ranks before the trouble, and the second, smaller trouble.

    Batches differ by some percent.
    """
    amount = story.share(0.03, 0.05)
    site = story.leak_site()
    for rank in story.ranks:
        for _ in range(story.num_steps):
            rank.step(int(tokens * story.random.uniform(0.985, 1)))
            if story.also == "growth":
                piece = rank.plant_growth(amount // story.num_steps, 2, site)
                story.note(rank, "growth", piece)
        if story.also == "non_torch":
            rank.empty_cache()
            story.note(rank, "non_torch", rank.plant_outside(amount))
        elif story.also == "fragmented":
            rank.empty_cache()
            story.note(rank, "fragmented", rank.plant_holes(amount // 3, 5))


def _until_full(rank: SimulatedRank, tokens: int, num_steps: int) -> None:
    for _ in range(num_steps):
        rank.step(tokens)


def _really_full(story: Story) -> None:
    high = 0.9 if story.also else 0.965
    tokens = story.tokens(high - 0.03, high)
    _warm_up(story, tokens)
    victim = story.ranks[story.victim]
    for longer in (1.04, 1.08, 1.12):
        victim.step(int(tokens * longer))


def _growth(story: Story) -> None:
    tokens = story.tokens(0.5, 0.62)
    _warm_up(story, tokens)
    victim = story.ranks[story.victim]
    amount = story.share(0.035, 0.07)
    pieces = int(story.random.integers(1, 6))
    site = story.leak_site()
    for place in range(14):
        # Peers leak as well; they are a step behind when the first one fails.
        for rank in (*(one for one in story.ranks if one is not victim), victim):
            if rank is victim or place < 4:
                story.note(rank, "growth", rank.plant_growth(amount, pieces, site))
                rank.step(tokens)


def _single_giant(story: Story) -> None:
    tokens = story.tokens(0.4, 0.58)
    _warm_up(story, tokens)
    victim = story.ranks[story.victim]
    victim.empty_cache()
    names = ("scores", "distances", "one hot")
    site = names[int(story.random.integers(0, len(names)))]
    # With the state of the training the device holds at least this much no more.
    held = victim.allocator.stats.get(ACTIVE)
    low = max(0.5 * story.total, 1.05 * (story.total - held))
    amount = int(low * story.random.uniform(1.0, 1.4))
    story.note(victim, "single_giant", amount)
    victim.training.new(site, amount)


def _imbalance(story: Story) -> None:
    tokens = story.tokens(0.5, 0.64)
    _warm_up(story, tokens)
    victim = story.ranks[story.victim]
    if story.random.random() < 0.5:
        extra = story.share(0.3, 0.4)
        victim.empty_cache()
        for _ in range(16):
            victim.training.new("parameter", extra // 16)
        _until_full(victim, int(tokens * 1.1), 2)
    for longer in (1.4, 1.7, 2.0, 2.4):
        victim.step(int(tokens * longer))


def _non_torch(story: Story) -> None:
    tokens = story.tokens(0.7, 0.82)
    _warm_up(story, tokens)
    amount = story.share(0.3, 0.38)
    for rank in story.ranks:
        rank.empty_cache()
        story.note(rank, "non_torch", rank.plant_outside(amount))
    _until_full(story.ranks[story.victim], tokens, 2)


def _fragmented(story: Story) -> None:
    story.num_steps = 2
    tokens = story.tokens(0.45, 0.55)
    _warm_up(story, tokens)
    count = int(story.random.integers(8, 14))
    left = story.random.uniform(0.03, 0.05)
    victim = story.ranks[story.victim]
    wanted = 0
    for rank in story.ranks:
        rank.empty_cache()
        room = rank.device.free_bytes - int(left * story.total)
        if rank is victim:
            wanted = int(room * 0.95) // count * 2
            rank.training.passing("prefill", wanted)
            rank.empty_cache()
        taken = rank.plant_holes(room - count * 64 * MIB, count)
        story.note(rank, "fragmented", taken)
    for _ in range(2):
        victim.step(int(tokens * 0.6))
    least = max(victim.room_bytes(), victim.largest_hole_bytes())
    victim.training.new("prefill", int(least * story.random.uniform(1.05, 1.3)))


def _fitting_block_free(story: Story) -> None:
    tokens = story.tokens(0.72, 0.82)
    _warm_up(story, tokens)
    amount = story.share(0.28, 0.36)
    in_graph = bool(story.random.random() < 0.5)
    for rank in story.ranks:
        rank.empty_cache()
        plant = rank.plant_graph_pool if in_graph else rank.plant_other_stream
        story.note(rank, "fitting_block_free", plant(amount))
    _until_full(story.ranks[story.victim], tokens, 2)


STORIES: Final[Mapping[OomCause, Callable[[Story], None]]] = {
    "really_full": _really_full,
    "growth": _growth,
    "single_giant": _single_giant,
    "imbalance": _imbalance,
    "non_torch": _non_torch,
    "fragmented": _fragmented,
    "fitting_block_free": _fitting_block_free,
}
