"""The growth of memory from round to round until an out-of-memory error, by line.

A line grows where its live bytes, looked at whenever a round begins, rise again and
again and hardly ever fall: caches and optimizer state rise once, inputs fetched ahead
rise and fall, a leak rises in every round. By chance a few batches in a row may also be
longer each time, so a line has to hold memory from several rounds, and not only from
the last ones, as a queue of batches does. One that makes a single block anew, larger each
time, has to do so for `MIN_LARGER` rounds in which not everything else grew as well. All
that such a line holds from before the round under way counts as kept; what is from before
the first event counts only where it was still there when the snapshot was taken, because
only then its stack is known. What a graph captured stays in its pool and is retained by no
list: pools that were filled at one go are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.allocator.lifetimes import ALLOC, BEFORE
from memboard.tb_plugin.analysis.allocator.rounds import (
    MIN_ROUNDS,
    Allocations,
    Rounds,
    loops,
    rounds_by_memory,
    rounds_by_steps,
)
from memboard.tb_plugin.analysis.arrays import NOTHING, changes, places_in, sums
from memboard.tb_plugin.analysis.categories.marks import COPY, DATA, MODULE
from memboard.tb_plugin.analysis.categories.passes import collected
from memboard.tb_plugin.analysis.categories.phases import (
    BACKWARD_PHASE,
    FORWARD,
    OPTIMIZER_PHASE,
)
from memboard.tb_plugin.analysis.oom.case import Growth

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.allocator.lifetimes import Lifetimes
    from memboard.tb_plugin.analysis.allocator.replay import Replay
    from memboard.tb_plugin.analysis.arrays import Flags, Ints


_MAX_LINES: Final = 3
_WORTH: Final = 0.1
"""Of what grew: what a line has to have kept to be named."""

_MAY_BEGIN: Final = DATA | COPY
"""Marks that a stack may bear where a round begins; calls of modules, backward, the
optimizer and the making of a model repeat within a round."""

_LONG: Final = 2
"""A step so many times as long as any before it may hold a loop of its own: an
evaluation behind the last marked step, or a generation within it."""


def growth_at(replay: Replay, event: int, step: Ints | None = None) -> Growth | None:
    """What was kept from round to round; None where nothing was, or rounds are not known.

    `step`: of each event, negative where it is not known; None: of none.
    """
    # What was freed and waits for another stream is not kept by the program.
    lives = replace(replay.lives, gone=replay.lives.freed)
    group = replay.stacks.lines(lives.stack)
    # Autograd's threads have no Python, and may keep memory all the same.
    unknown = (group < 0) & (lives.born != BEFORE)
    group = np.where(unknown, group.max(initial=0) + 1, group)
    group = np.where(np.isin(replay.pool, captured_pools(replay)), NOTHING, group)
    # One line may serve passes that are kept and others that are not.
    stack = np.where(group < 0, NOTHING, lives.stack)
    grown: SiteGrowth | None = None
    by: Rounds | None = None
    for rounds in rounds_at(replay, event, step):
        of_rounds = growth_of_sites(lives, group, rounds, event)
        released = released_together(replay, lives, stack, rounds, event)
        if released.total_bytes > of_rounds.total_bytes / 2:
            of_rounds = released
        if grown is None or of_rounds.total_bytes > grown.total_bytes:
            grown, by = of_rounds, rounds
    if grown is None or by is None or not grown.total_bytes:
        return None
    group = stack if grown.num_releases else group
    kept = np.flatnonzero(grown.kept_bytes >= _WORTH * grown.total_bytes)
    labels = []
    for place in kept.tolist():
        of_line = np.flatnonzero(group == grown.group[place])
        labels.append(replay.stacks.label(int(lives.stack[of_line[-1]])))
    labels = list(dict.fromkeys(labels))
    is_live = np.isin(group, grown.group) & (lives.born <= event) & (lives.gone > event)
    in_pools = int(lives.size[is_live & (replay.pool > 0)].sum())
    return Growth(
        num_bytes=grown.total_bytes,
        bytes_per_round=grown.bytes_per_round,
        num_rounds=grown.num_between,
        by=by.by,  # type: ignore[arg-type]
        before_bytes=int(grown.before_bytes.sum()),
        lines=tuple(label for label in labels[:_MAX_LINES] if label),
        in_pools=2 * in_pools > int(lives.size[is_live].sum()),
        num_releases=grown.num_releases,
    )


def captured_pools(replay: Replay) -> Ints:
    """Rows of private pools that a graph made for itself, or that were filled at one go.

    A pool (n, 0) is a graph's own. Of one that the program made nothing else was
    allocated between its first allocation and its last.
    """
    born = replay.lives.born
    order = np.argsort(born, kind="stable")
    pool = replay.pool[order][born[order] != BEFORE]
    runs = pool[np.flatnonzero(np.diff(pool, prepend=-2))]
    rows, num_runs = np.unique(runs[runs > 0], return_counts=True)
    ids = replay.snapshot.pools
    of_graphs = np.array([ids[row][0] != 0 for row in rows.tolist()], np.bool_)
    captured: Ints = rows[of_graphs | (num_runs == 1)]
    return captured


def rounds_at(replay: Replay, event: int, step: Ints | None) -> list[Rounds]:
    """The rounds that can be told until an event, the surest first."""
    all_rounds, since = [], 0
    if step is not None:
        steps = rounds_by_steps(step[: event + 1])
        if len(steps) >= MIN_ROUNDS:
            all_rounds, since = [steps], int(steps.start[-1])
            if event - since <= _LONG * int(np.diff(steps.start).max()):
                return all_rounds
    told = _allocations(replay, event).since(since)
    may_begin = ~replay.stacks.has(~_MAY_BEGIN) & ~replay.stacks.calls("__init__")
    may_begin[-1] = False
    all_rounds += [Rounds(start, "stacks") for start in loops(told, may_begin)]
    if all_rounds:
        return all_rounds
    phases = _by_phases(replay, event)
    if len(phases) >= MIN_ROUNDS:
        return [Rounds(phases, "stacks")]
    by_memory = rounds_by_memory(replay.lives, event, _outside_modules(replay))
    if len(by_memory):
        return [by_memory]
    made = collected(replay, event)
    return [Rounds(made, "stacks")] if len(made) else []


def _allocations(replay: Replay, event: int) -> Allocations:
    events = replay.device.events
    rows = np.flatnonzero(events.action[: event + 1] == ALLOC)
    num = len(replay.stacks)
    stack = events.stack[rows].astype(np.int64)
    return Allocations(rows, np.where(stack < 0, num, stack), replay.active.after[rows])


def _by_phases(replay: Replay, event: int) -> Ints:
    """Where a forward begins behind a backward or an optimizer."""
    phases = replay.phases
    kind = phases.kind
    begins = kind == FORWARD
    begins[1:] &= np.isin(kind[:-1], (BACKWARD_PHASE, OPTIMIZER_PHASE))
    first = np.searchsorted(phases.of_event, np.flatnonzero(begins))
    return first[first <= event]


def _outside_modules(replay: Replay) -> Ints:
    """Events that allocated outside any module's call."""
    events = replay.device.events
    inside = replay.stacks.has(MODULE)[events.stack]
    return np.flatnonzero((events.action == ALLOC) & ~inside)


MIN_RISES: Final = 3
"""Rounds in which a line's bytes rose, behind the first one."""

RISING_SHARE: Final = 0.4
"""Of all rounds behind the first, those in which it rose: leaks may skip rounds."""

FOLLOWS: Final = 0.75
"""Of the rounds in which a single block was larger than before, those in which more was
allocated besides than in the round before."""

LATE_SHARE: Final = 0.25
"""Of what a line rose by, what came in the second half of the rounds, where it rose in
fewer rounds: a cache that fills up stops."""

MIN_LARGER: Final = 5
"""Rounds in a row in which a line's only block was larger than before."""

MAX_FALLS: Final = 0.2
"""Bytes it fell by, as a share of those it rose by."""

MAX_LOOKS: Final = 64
"""Rounds that are looked at; of more, every so many."""


@dataclass(frozen=True, slots=True)
class SiteGrowth:
    """Lines that grew, the one that grew most first; bytes as requested."""

    group: Ints
    """As they were given: stacks, or lines."""
    kept_bytes: Ints
    """Held at the moment from earlier rounds; or what a line's bytes rose by, where it
    makes one larger block after the other."""
    rise_bytes: Ints
    """What its bytes rose by between the first look and the last, where they are still
    held at the moment."""
    before_bytes: Ints
    """Held from before the first event; part of what was kept."""
    num_rounds: int
    """Rounds that were looked at."""
    num_between: int
    """Rounds between the first look that counts and the last."""
    num_releases: int = 0
    """Moments before at which what they held from several rounds was freed together."""

    @property
    def total_bytes(self) -> int:
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
    sites = np.unique(group[live])
    if len(looks) < MIN_RISES or not len(sites):
        none = np.empty(0, np.int64)
        return SiteGrowth(*(none,) * 4, num_rounds=len(looks), num_between=0)
    site_bytes = _held(lives, group, sites, looks)
    first = 1 if len(looks) > MIN_RISES else 0
    steps = np.diff(site_bytes[:, first:], axis=1)
    rises = np.where(steps > 0, steps, 0).sum(axis=1)
    falls = np.where(steps < 0, -steps, 0).sum(axis=1)
    num_rises = np.count_nonzero(steps > 0, axis=1)
    often = num_rises >= RISING_SHARE * steps.shape[1]
    late = np.maximum(steps[:, steps.shape[1] // 2 :], 0).sum(axis=1)
    often |= late >= LATE_SHARE * np.maximum(rises, 1)
    keeps = _keeps(lives, group, sites, looks, moment)
    keeps &= num_rises >= min(MIN_RISES, steps.shape[1])
    larger = num_rises >= max(MIN_LARGER, RISING_SHARE * steps.shape[1])
    larger &= ~_follows(lives, group, sites, looks, steps)
    keeps |= larger
    grows = np.flatnonzero(keeps & often & (falls <= MAX_FALLS * rises))
    # What rose and was freed since the last look fills nothing.
    still = _sums(lives, group, sites, live)[grows]
    rise = np.minimum(site_bytes[grows, -1] - site_bytes[grows, first], still)
    earlier = live[lives.born[live] < looks[-1]]
    kept = _sums(lives, group, sites, earlier)[grows]
    before = _sums(lives, group, sites, live[lives.born[live] == BEFORE])[grows]
    kept = np.maximum(kept, rise)
    order = np.argsort(-kept, kind="stable")
    return SiteGrowth(
        group=sites[grows[order]],
        kept_bytes=kept[order],
        rise_bytes=rise[order],
        before_bytes=before[order],
        num_rounds=len(looks),
        num_between=len(rounds) - 1 - first,
    )


RELEASED_SHARE: Final = 0.8
"""Of what a line freed: what has to have gone together with that of other rounds."""

MIN_RELEASES: Final = 1


def released_together(
    replay: Replay, lives: Lifetimes, group: Ints, rounds: Rounds, moment: int
) -> SiteGrowth:
    """Groups that hold memory of several rounds, as they did before it was all freed.

    Freed together: nothing was allocated in between, and it is of `MIN_RISES` rounds or
    more. So the garbage collector frees what reference cycles hold, and a program a list
    that it clears; the last rise may fill the device.
    """
    rows = np.flatnonzero(
        (group >= 0) & (lives.born != BEFORE) & (lives.born <= moment)
    )
    sites, site = np.unique(group[rows], return_inverse=True)
    size, gone, num_sites = lives.size[rows], lives.gone[rows], len(sites)
    number = np.searchsorted(rounds.start, lives.born[rows], "right")
    num_rounds = len(rounds) + 1
    freed = np.flatnonzero(gone <= moment)
    allocated = np.cumsum(replay.device.events.action[: moment + 1] == ALLOC)
    width = int(allocated[-1]) + 1
    together, place = np.unique(
        site[freed] * width + allocated[gone[freed]], return_inverse=True
    )
    born_in = np.unique(place * num_rounds + number[freed]) // num_rounds
    is_release = np.bincount(born_in, minlength=len(together)) >= MIN_RISES
    freed_bytes, of_site = sums(place, size[freed], len(together)), together // width
    released = sums(of_site[is_release], freed_bytes[is_release], num_sites)
    num_releases = np.bincount(of_site[is_release], minlength=num_sites)
    live = np.flatnonzero(gone > moment)
    live_in = np.unique(site[live] * num_rounds + number[live]) // num_rounds
    num_live = np.bincount(live_in, minlength=num_sites)
    kept = sums(site[live], size[live], num_sites)
    chosen = np.flatnonzero(
        (num_releases >= MIN_RELEASES)
        & (released >= RELEASED_SHARE * sums(of_site, freed_bytes, num_sites))
        & (num_live >= MIN_RISES)
    )
    chosen = chosen[np.argsort(-kept[chosen], kind="stable")]
    return SiteGrowth(
        group=sites[chosen],
        kept_bytes=kept[chosen],
        rise_bytes=kept[chosen],
        before_bytes=np.zeros(len(chosen), np.int64),
        num_rounds=len(rounds),
        num_between=int(num_live[chosen].max(initial=0)),
        num_releases=int(num_releases[chosen].max(initial=0)),
    )


def _sums(lives: Lifetimes, group: Ints, sites: Ints, rows: Ints) -> Ints:
    """Bytes of some lives by found group."""
    return sums(np.searchsorted(sites, group[rows]), lives.size[rows], len(sites))


def _keeps(
    lives: Lifetimes, group: Ints, sites: Ints, looks: Ints, moment: int
) -> Flags:
    """By found group: whether it holds memory from `MIN_RISES` rounds, early ones too.

    Early: of the rounds in which the group allocated, the first half.
    """
    rows = np.flatnonzero((lives.born <= moment) & np.isin(group, sites))
    width = len(looks) + 1
    number = np.searchsorted(looks, lives.born[rows], "right")
    key = np.searchsorted(sites, group[rows]) * width + number
    made = np.unique(key)
    live_keys = np.unique(key[lives.gone[rows] > moment])
    num_made = np.bincount(made // width, minlength=len(sites))
    num_held = np.bincount(live_keys // width, minlength=len(sites))
    # Of each group, the place of a round among those in which it allocated.
    first = np.cumsum(num_made) - num_made
    oldest = np.full(len(sites), width)
    np.minimum.at(oldest, live_keys // width, np.searchsorted(made, live_keys))
    early: Flags = 2 * (oldest - first) <= num_made
    return early & (num_held >= MIN_RISES)


def _follows(
    lives: Lifetimes, group: Ints, sites: Ints, looks: Ints, steps: Ints
) -> Flags:
    """By found group: whether it rose when all else that was allocated rose as well.

    Then batches were longer each time, and nothing was kept.
    """
    rows = np.flatnonzero((lives.born >= looks[0]) & (lives.born < looks[-1]))
    number = np.searchsorted(looks, lives.born[rows], "right") - 1
    width, size = len(looks) - 1, lives.size[rows].astype(np.float64)
    place = places_in(sites, group[rows])
    own = np.flatnonzero(place != NOTHING)
    asked = np.zeros((len(sites), width), np.float64)
    np.subtract.at(asked, (place[own], number[own]), size[own])
    asked += np.bincount(number, size, width)
    more = np.diff(asked, axis=1, prepend=0)[:, -steps.shape[1] :] > 0
    together = np.count_nonzero((steps > 0) & more, axis=1)
    num_rises = np.count_nonzero(steps > 0, axis=1)
    follows: Flags = together >= FOLLOWS * np.maximum(1, num_rises)
    return follows


def _held(lives: Lifetimes, group: Ints, sites: Ints, looks: Ints) -> Ints:
    """(found groups, looks): live bytes of each group at each look."""
    place = places_in(sites, group)
    rows = np.flatnonzero(place != NOTHING)
    born, gone = (
        np.searchsorted(looks, events[rows]) for events in (lives.born, lives.gone)
    )
    size, width = lives.size[rows], len(looks)
    came = changes(born, gone, size, width, place[rows], len(sites))
    live_bytes: Ints = np.cumsum(came, axis=1)
    return live_bytes
