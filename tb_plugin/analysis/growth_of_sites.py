"""Which lines keep memory from round to round, and how much of it by a moment.

A line grows where its live bytes, looked at whenever a round begins, rise again and
again and hardly ever fall: caches and optimizer state rise once, inputs fetched ahead
rise and fall, a leak rises in every round. All that such a line holds from before the
round under way counts as kept; what is from before the first event counts only where it
was still there when the snapshot was taken, because only then its stack is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tb_plugin.analysis.lifetimes import BEFORE

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.lifetimes import Lifetimes
    from tb_plugin.analysis.rounds import Rounds

    Ints: TypeAlias = npt.NDArray[Any]

MIN_RISES: Final = 3
"""Rounds in which a line's bytes rose, behind the first one."""

RISING_SHARE: Final = 0.4
"""Of all rounds behind the first, those in which it rose: leaks may skip rounds."""

MAX_FALLS: Final = 0.2
"""Bytes it fell by, as a share of those it rose by."""

MAX_LOOKS: Final = 64
"""Rounds that are looked at; of more, every so many."""


@dataclass(frozen=True, slots=True)
class SiteGrowth:
    """Lines that grew, the one that grew most first; bytes as asked for."""

    group: Ints
    """As they were given: stacks, or lines."""
    kept_bytes: Ints
    """Held at the moment from earlier rounds; or what a line's bytes rose by, where it
    makes one larger block after the other."""
    rise_bytes: Ints
    """What its bytes rose by between the first look and the last."""
    before_bytes: Ints
    """Held from before the first event; part of what was kept."""
    num_rounds: int
    """Rounds that were looked at."""
    num_between: int
    """Rounds between the first look that counts and the last."""

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return int(self.kept_bytes.sum())

    @property
    def bytes_per_round(self) -> float:
        """Mean rise between the looks."""
        return float(self.rise_bytes.sum()) / max(1, self.num_between)


def growth_of_sites(
    lives: Lifetimes, group: Ints, rounds: Rounds, moment: int
) -> SiteGrowth:
    """The groups of lives that grew over the rounds until a moment.

    `group`: of each life, negative for those that are left out.
    """
    looks = rounds.start
    if len(looks) > MAX_LOOKS:
        looks = looks[np.linspace(0, len(looks) - 1, MAX_LOOKS).astype(np.int64)]
    # Only what is live now can have grown.
    live = np.flatnonzero((lives.born <= moment) & (lives.gone > moment) & (group >= 0))
    found = np.unique(group[live])
    if len(looks) < MIN_RISES or not len(found):
        return SiteGrowth(*_none(), num_rounds=len(looks), num_between=0)
    held = _held(lives, group, found, looks)
    first = 1 if len(looks) > MIN_RISES else 0
    steps = np.diff(held[:, first:], axis=1)
    rises = np.where(steps > 0, steps, 0).sum(axis=1)
    falls = np.where(steps < 0, -steps, 0).sum(axis=1)
    num_rises = np.count_nonzero(steps > 0, axis=1)
    enough = max(MIN_RISES, int(np.ceil(RISING_SHARE * steps.shape[1])))
    enough = min(enough, steps.shape[1])
    grows = np.flatnonzero((num_rises >= enough) & (falls <= MAX_FALLS * rises))
    rise = held[grows, -1] - held[grows, first]
    earlier = live[lives.born[live] < looks[-1]]
    kept = _sums(lives, group, found, earlier)[grows]
    before = _sums(lives, group, found, live[lives.born[live] == BEFORE])[grows]
    kept = np.maximum(kept, rise)
    order = np.argsort(-kept, kind="stable")
    return SiteGrowth(
        group=found[grows[order]],
        kept_bytes=kept[order],
        rise_bytes=rise[order],
        before_bytes=before[order],
        num_rounds=len(looks),
        num_between=len(rounds) - 1 - first,
    )


def _none() -> tuple[Ints, Ints, Ints, Ints]:
    empty = np.empty(0, np.int64)
    return empty, empty, empty, empty


def _sums(lives: Lifetimes, group: Ints, found: Ints, rows: Ints) -> Ints:
    """Bytes of some lives by found group."""
    sums = np.zeros(len(found), np.int64)
    np.add.at(sums, np.searchsorted(found, group[rows]), lives.size[rows])
    return sums


def _held(lives: Lifetimes, group: Ints, found: Ints, looks: Ints) -> Ints:
    """(found groups, looks): live bytes of each group at each look."""
    place = np.minimum(np.searchsorted(found, group), len(found) - 1)
    rows = np.flatnonzero(found[place] == group)
    place = place[rows]
    delta = np.zeros((len(found), len(looks) + 1), np.int64)
    np.add.at(
        delta, (place, np.searchsorted(looks, lives.born[rows])), lives.size[rows]
    )
    np.subtract.at(
        delta, (place, np.searchsorted(looks, lives.gone[rows])), lives.size[rows]
    )
    held: Ints = np.cumsum(delta, axis=1)[:, :-1]
    return held
