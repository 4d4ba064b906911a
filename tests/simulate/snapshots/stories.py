"""Plays each kind of out-of-memory error, from the first step to the last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.simulate.allocator.settings import MIB
from tests.simulate.allocator.stats import ACTIVE
from tests.simulate.snapshots.rank import SimulatedRank, make_machine, tokens_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np

    from tests.simulate.snapshots.label import OomCause


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What all draws of a case have in common: no ambiguous draw may change the odds."""

    cause: OomCause
    also: OomCause | None
    expandable: bool
    resumed: bool
    """From a checkpoint: see `Machine`."""
    early: bool
    """The trouble is there from the first step."""
    num_ranks: int
    victim: int
    """The rank that will fail."""

    @classmethod
    def draw(
        cls, cause: OomCause, also: OomCause | None, random: np.random.Generator
    ) -> Plan:
        """A plan for a cause and a smaller one."""
        # Where whole free pages can be unmapped, little is left between live blocks.
        pinned = cause == "fragmented" or also == "fragmented"
        expandable = not pinned and bool(random.random() < 0.5)
        early = also is None and bool(random.random() < 0.5)
        resumed = bool(random.random() < 0.5)
        if not expandable and cause in ("really_full", "growth", "imbalance"):
            # Moments made behind the first step would pin segments and leave holes.
            resumed = True
        if cause == "really_full":
            # What is kept between steps, and batches that differ, leave holes as well.
            expandable = expandable or also is not None
            early = early or not expandable
            resumed = resumed or early
        several = random.random() < 0.3 or cause == "imbalance"
        num_ranks = int(random.integers(3, 6)) if several else 1
        return cls(
            cause=cause,
            also=also,
            expandable=expandable,
            resumed=resumed,
            early=early,
            num_ranks=num_ranks,
            victim=int(random.integers(0, num_ranks)),
        )


class Story:
    """One draw: the ranks, and what happens to them until one fails."""

    def __init__(self, plan: Plan, random: np.random.Generator) -> None:
        self.plan = plan
        self.random = random
        self.machine = make_machine(
            random, expandable=plan.expandable, resumed=plan.resumed
        )
        self.total = self.machine.total_bytes - self.machine.context_bytes
        self.num_steps = int(random.integers(3, 6))
        self.planted: dict[str, int] = {}
        seeds = random.integers(0, 2**31, plan.num_ranks).tolist()
        self.ranks = [SimulatedRank(self.machine, one) for one in seeds]

    @property
    def victim(self) -> SimulatedRank:
        """The rank that will fail."""
        return self.ranks[self.plan.victim]

    def share(self, low: float, high: float) -> int:
        """So much of the device, drawn between two shares."""
        return int(self.random.uniform(low, high) * self.total)

    def tokens(self, low: float, high: float) -> int:
        """Tokens of a batch whose step peaks between two shares of the device."""
        return tokens_for(self.machine, self.share(low, high))

    def note(self, rank: SimulatedRank, cause: OomCause, num_bytes: int) -> None:
        """Count what a cause took, if it took it from the rank that will fail."""
        if rank is self.victim:
            self.planted[cause] = self.planted.get(cause, 0) + num_bytes

    def leak_site(self) -> str:
        """Which line keeps too much."""
        sites = ("kept outputs", "feature cache")
        return sites[int(self.random.integers(0, len(sites)))]


def _warm_up(story: Story, tokens: int) -> None:
    """Steps of all ranks before the trouble, and the second, smaller trouble.

    None of the failing rank's where the trouble is there from the start. Batches differ
    by some percent only where that leaves no holes between live blocks.
    """
    also = story.plan.also
    amount = story.share(0.03, 0.05)
    site = story.leak_site()
    spread = 0.015 if story.plan.expandable else 0.0
    for rank in story.ranks:
        num_steps = story.num_steps
        if story.plan.early and rank is story.victim:
            num_steps = 0
        for _ in range(num_steps):
            batch = int(tokens * story.random.uniform(1 - spread, 1))
            if also == "growth":
                _leak(story, rank, batch, (amount // num_steps, 2, site))
            else:
                rank.step(batch)
        if also == "non_torch":
            rank.empty_cache()
            story.note(rank, "non_torch", rank.plant_outside(amount))
        elif also == "fragmented":
            rank.empty_cache()
            story.note(rank, "fragmented", rank.plant_holes(amount // 3, 5))


def _leak(
    story: Story, rank: SimulatedRank, tokens: int, kept: tuple[int, int, str]
) -> None:
    """A step that keeps something made at its loss: (bytes, pieces, site)."""

    def keep() -> None:
        story.note(rank, "growth", rank.plant_growth(*kept))

    rank.step(tokens, at_loss=keep)


def _until_full(rank: SimulatedRank, tokens: int, num_steps: int) -> None:
    for _ in range(num_steps):
        rank.step(tokens)


def _really_full(story: Story) -> None:
    if story.plan.early:
        # The first step never fits; the peers' batches happen to be a little smaller.
        tokens = story.tokens(0.88, 0.92)
        for rank in story.ranks:
            if rank is not story.victim:
                rank.step(tokens)
        _until_full(story.victim, story.tokens(1.02, 1.12), 2)
    high = 0.9 if story.plan.also else 0.965
    tokens = story.tokens(high - 0.03, high)
    _warm_up(story, tokens)
    for longer in (1.04, 1.08, 1.12):
        story.victim.step(int(tokens * longer))


def _growth(story: Story) -> None:
    tokens = story.tokens(0.5, 0.62)
    if not story.plan.early:
        _warm_up(story, tokens)
    victim = story.victim
    amount = story.share(0.035, 0.07)
    # Small pieces would pin segments that the gradients left free.
    pieces = int(story.random.integers(1, 6)) if story.plan.expandable else 1
    site = story.leak_site()
    for _ in range(14):
        # Peers leak as well, a little less: they are behind when the first one fails.
        _leak(story, victim, tokens, (amount, pieces, site))
        for rank in story.ranks:
            if rank is not victim:
                _leak(story, rank, tokens, (amount * 14 // 15, pieces, site))


def _single_giant(story: Story) -> None:
    tokens = story.tokens(0.4, 0.58)
    _warm_up(story, tokens)
    victim = story.victim
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
    victim = story.victim
    if story.random.random() < 0.5:
        extra = story.share(0.3, 0.4)
        victim.empty_cache()
        for _ in range(16):
            victim.training.new("parameter", extra // 16)
        _until_full(victim, int(tokens * 1.1), 2)
    first = 1.7 if story.plan.early else 1.4
    for longer in (first, 1.7, 2.0, 2.4):
        victim.step(int(tokens * longer))


def _non_torch(story: Story) -> None:
    tokens = story.tokens(0.7, 0.82)
    _warm_up(story, tokens)
    amount = story.share(0.3, 0.38)
    for rank in story.ranks:
        rank.empty_cache()
        story.note(rank, "non_torch", rank.plant_outside(amount))
    _until_full(story.victim, tokens, 2)


def _fragmented(story: Story) -> None:
    tokens = story.tokens(0.45, 0.55)
    _warm_up(story, tokens)
    count = int(story.random.integers(8, 14))
    left = story.random.uniform(0.03, 0.05)
    victim = story.victim
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
    # Another stream's pages would be unmapped around what pins them.
    in_graph = story.plan.expandable or bool(story.random.random() < 0.5)
    for rank in story.ranks:
        rank.empty_cache()
        plant = rank.plant_graph_pool if in_graph else rank.plant_other_stream
        story.note(rank, "fitting_block_free", plant(amount))
    _until_full(story.victim, tokens, 2)


STORIES: Final[Mapping[OomCause, Callable[[Story], None]]] = {
    "really_full": _really_full,
    "growth": _growth,
    "single_giant": _single_giant,
    "imbalance": _imbalance,
    "non_torch": _non_torch,
    "fragmented": _fragmented,
    "fitting_block_free": _fitting_block_free,
}
