"""Kinds of things that hold memory and call for advice of their own.

What lines do not say: that memory is of private pools, of a cache of keys and values, of
a second copy of the model, of passes that no backward follows, or of cuBLAS. Each is told
by frames, pools, sizes and lives; what is told by less than its frames says so.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.allocator.live import held_rows
from memboard.tb_plugin.analysis.categories.frames import USER
from memboard.tb_plugin.analysis.categories.marks import (
    ALL_GATHER,
    BACKWARD,
    DATA,
    MAKE,
    MODULE,
    MOVE,
    NO_PYTHON,
    OPTIMIZER,
    OPTIMIZER_STATE,
    SHARD,
    UNSHARD,
)
from memboard.tb_plugin.analysis.categories.passes import (
    by_other_ways,
    had_backward,
    keeps_graph,
)
from memboard.tb_plugin.analysis.categories.phases import (
    BACKWARD_PHASE,
    OPTIMIZER_PHASE,
)
from memboard.tb_plugin.analysis.oom.growth_until_error import rounds_at
from memboard.tb_plugin.analysis.oom.holders import Holding, HoldingKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.analysis.allocator.replay import Replay
    from memboard.tb_plugin.analysis.arrays import Flags, Ints


WORTH: Final = 0.1
"""Of what is live: from here on a holding is told."""
WORTH_OF_WORKSPACES: Final = 0.02
"""They are small beside what is live, and easily avoided."""

RETAINED: Final = 0.3
"""Of what a forward allocated, what it still holds: without gradients it would be the
last layer or two."""

_MAX_LINES: Final = 3

_KV_NAME: Final = re.compile(
    r"kv_?cache|key_value_cache|past_key_value|cache_kv|(^|_)(k|v|keys?|values?)_cache"
    r"|(^|_)kvs?(_|$)|^_?(setup|init|allocate)_caches?$",
    re.IGNORECASE,
)
_KV_FILE: Final = re.compile(
    r"(^|[/\\])(cache_utils|\w*kv_?cache\w*|cache_engine)\.py$|[/\\]mem_cache[/\\]",
    re.IGNORECASE,
)
_COPY_NAME: Final = re.compile(
    r"^_*deepcopy_*$|(^|_)(ema|teacher|shadow)(_|$)"
    r"|(^|_)(ref|reference|target|old)_(model|policy|net)(_|$)"
)
_COPY_FILE: Final = re.compile(r"(^|[/\\])copy\.py$|[/\\]torch[/\\]optim[/\\]swa_utils")
_LOAD_FILE: Final = re.compile(
    r"[/\\]torch[/\\]serialization\.py$|[/\\]safetensors[/\\]\w+\.py$"
)
_LOSS_NAME: Final = re.compile(
    r"^_*(linear_)?(cross_entropy(_loss)?|log_softmax|nll_loss)(_\w+)?$|^CrossEntropyLoss$"
)
_THREAD_FILE: Final = re.compile(r"(^|[/\\])threading\.py$")
_EVALUATES: Final = re.compile(
    r"(^|_)(eval|evaluate|evaluation|val|validate|validation|test|predict|prediction"
    r"|infer|inference|generate|sample)(_|$)"
)
_NO_GRAD_FILE: Final = re.compile(r"[/\\]torch[/\\]utils[/\\]_contextlib\.py$")

_POOLS: Final[dict[HoldingKind, bool]] = {"graph_pools": True, "program_pools": False}
"""Whether a graph made the pool for itself: its id is (n, 0), else it is (0, n)."""

_MODEL: Final = MAKE | MOVE
_NO_MODEL: Final = BACKWARD | OPTIMIZER | OPTIMIZER_STATE | NO_PYTHON
_NO_PASS: Final = (
    _MODEL | BACKWARD | OPTIMIZER | OPTIMIZER_STATE | UNSHARD | ALL_GATHER | SHARD
)


def trains(replay: Replay, event: int) -> bool:
    """Whether a training made the request: it had a backward, or keeps a graph for one.

    Before the first backward, who records no graph or serves from a KV cache trains nothing:
    its first forward keeps most of what it made so far as well.
    """
    if had_backward(replay, event):
        return True
    stacks, lives = replay.stacks, replay.lives
    is_cache = stacks.matching(_KV_NAME, _KV_FILE)
    without_graph = stacks.matching(None, _NO_GRAD_FILE)
    if without_graph[int(replay.device.events.stack[event])]:
        return False
    rows = held_rows(lives, event)
    cached = lives.size[rows][is_cache[lives.stack[rows]]].sum()
    if cached >= max(1.0, WORTH * lives.size[rows].sum()):
        return False
    return keeps_graph(replay, event, is_cache)


def makes_model(replay: Replay, event: int) -> bool:
    """Whether the request came of making or loading a model."""
    stack = int(replay.device.events.stack[event])
    loads = replay.stacks.matching(None, _LOAD_FILE)
    return bool(
        loads[stack]
        or (replay.stacks.has(_MODEL) & ~replay.stacks.has(_NO_MODEL))[stack]
    )


def holdings(
    replay: Replay, event: int, step: Ints | None = None
) -> tuple[Holding, ...]:
    """What is worth being told at an event, the largest first."""
    kinds_held = _Look(replay, event, step).all()
    return tuple(sorted(kinds_held, key=lambda holding: -holding.num_bytes))


class _Look:
    """What lives at one event."""

    def __init__(self, replay: Replay, event: int, step: Ints | None) -> None:
        self.replay, self.event, self.step = replay, event, step
        self.rows = held_rows(replay.lives, event)
        self.stack = replay.lives.stack[self.rows]
        self.size = replay.lives.size[self.rows]
        self.total = int(self.size.sum())

    def all(self) -> Iterator[Holding]:
        least = WORTH * self.total
        is_cache = self._of(_KV_NAME, _KV_FILE)
        spaces = self.replay.workspaces[self.rows]
        in_pools = self.replay.pool[self.rows] > 0
        passing = self._without_backward(is_cache | spaces | in_pools, least)
        ahead = self._told("prefetched", self._fetched())
        for holding in (
            *self._pools(),
            self._told("kv_cache", is_cache),
            self._told("model_copy", self._copies()),
            self._told("checkpoint", self._of(None, _LOAD_FILE)),
            self._told("vocabulary", self._of(_LOSS_NAME, None)),
            ahead if ahead.num >= _FEWEST else None,
            passing,
        ):
            if holding is not None and holding.num_bytes >= max(1, least):
                yield holding
        workspaces = self._told("workspaces", spaces)
        if workspaces.num_bytes >= max(1, WORTH_OF_WORKSPACES * self.total):
            yield workspaces

    def _told(self, kind: HoldingKind, chosen: Flags) -> Holding:
        size, stack = self.size[chosen], self.stack[chosen]
        return Holding(
            kind=kind,
            num_bytes=int(size.sum()),
            num=int(np.count_nonzero(chosen)),
            lines=self.replay.stacks.largest(stack, size, _MAX_LINES),
        )

    def _has(self, marks: int) -> Flags:
        return self.replay.stacks.has(marks)[self.stack]

    def _of(
        self, name: re.Pattern[str] | None, filename: re.Pattern[str] | None
    ) -> Flags:
        """Rows with a frame of such a name or file."""
        return self.replay.stacks.matching(name, filename)[self.stack]

    def _pools(self) -> Iterator[Holding]:
        """What private pools reserved, of graphs' own and of those the program made."""
        segments = self.replay.at(self.event).segments
        ids = self.replay.snapshot.pools
        for kind, is_own in _POOLS.items():
            rows = [
                row
                for row, (first, _) in enumerate(ids)
                if row and (first != 0) == is_own
            ]
            chosen = np.isin(segments.pool, rows)
            size = segments.total_size[chosen]
            yield Holding(
                kind=kind,
                num_bytes=int(size.sum()),
                num=len(np.unique(segments.pool[chosen])),
                lines=self.replay.stacks.largest(
                    segments.stack[chosen], size, _MAX_LINES
                ),
                free_bytes=int(segments.free_size[chosen].sum()),
            )

    def _fetched(self) -> Flags:
        """What a loader fetched, or a thread of the program's own that calls no model."""
        by_thread = self._of(None, _THREAD_FILE) | self._has(DATA)
        return by_thread & ~self._has(_NO_PASS | MODULE)

    def _copies(self) -> Flags:
        """What a model was copied into: by frames, or once more the same sizes."""
        outside = ~self._has(_NO_MODEL | MODULE) | self._has(MAKE | MOVE)
        copied = self._of(_COPY_NAME, _COPY_FILE) & outside
        of_model = self._has(_MODEL) & ~self._has(_NO_MODEL) & ~copied
        other = outside & ~of_model & ~copied & (self.stack >= 0)
        groups = [
            *_grouped(self._made_at(), of_model),
            *_grouped(self.replay.stacks.lines(self.stack), other),
        ]
        seen: list[Counter[int]] = []
        for rows in groups:
            sizes = Counter(self.size[rows].tolist())
            alike = len(rows) >= _FEWEST if of_model[rows[0]] else len(sizes) > 1
            if alike and sizes in seen:
                copied[rows] = True
            seen.append(sizes)
        return copied

    def _made_at(self) -> Ints:
        """Of each row: the user's outermost frame that stacks of models do not share.

        NOTHING where that is in a class's own `__init__`: layers of one model are alike.
        """
        stacks, kinds = self.replay.stacks, self.replay.stacks.kinds
        chains = {}
        for stack in np.unique(self.stack[self._has(_MODEL)]).tolist():
            frames = [row for row in stacks.of(stack).tolist() if kinds[row] == USER]
            chains[stack] = frames[::-1]
        depth = 0
        while len(
            {tuple(chain[: depth + 1]) for chain in chains.values()}
        ) == 1 and all(len(chain) > depth + 1 for chain in chains.values()):
            depth += 1
        frame_of_stack = np.full(len(stacks) + 1, -1, np.int64)
        for stack, chain in chains.items():
            frame = chain[depth] if len(chain) > depth else -1
            if frame >= 0 and stacks.name[frame] != "__init__":
                frame_of_stack[stack] = frame
        return frame_of_stack[self.stack]

    def _without_backward(self, told: Flags, least: float) -> Holding | None:
        """What passes through the model hold that no backward followed.

        `told`: rows that are something else.
        """
        phases = self.replay.phases
        until = phases.of_event[: self.event + 1]
        after = np.isin(phases.kind[until], (BACKWARD_PHASE, OPTIMIZER_PHASE))
        last = int(np.flatnonzero(after)[-1]) if after.any() else -1
        if last == self.event:
            return None
        born = self.replay.lives.born[self.rows]
        is_from_forward = (
            self._has(MODULE) & ~self._has(_NO_PASS) & ~told & (born > last)
        )
        if self.size[is_from_forward].sum() < max(1, least):
            return None
        starts = rounds_at(self.replay, self.event, self.step)
        passes = max(
            (int(np.count_nonzero(kind.start > last)) for kind in starts), default=0
        )
        num_held = 1
        if starts:
            rounds = np.searchsorted(starts[-1].start, born[is_from_forward], "right")
            num_held = len(np.unique(rounds))
        # A round may begin within a pass, which then lies in two of them.
        num = max(1, min(passes, num_held))
        if num >= _FEWEST or (self._evaluates(last) and self._retains(last)):
            return replace(self._told("no_backward", is_from_forward), num=num)
        return None

    def _evaluates(self, last: int) -> bool:
        """Whether the failed request came of an evaluation that may record a graph."""
        stacks = self.replay.stacks
        frames = stacks.of(int(self.replay.device.events.stack[self.event])).tolist()
        if any(_NO_GRAD_FILE.search(stacks.filename[row]) for row in frames):
            return False
        if any(_EVALUATES.search(stacks.name[row]) for row in frames):
            return True
        return by_other_ways(self.replay, last, self.event)

    def _retains(self, since: int) -> bool:
        lives = self.replay.lives
        of_pass = self.replay.stacks.has(MODULE)[lives.stack]
        of_pass &= (lives.born > since) & (lives.born <= self.event)
        asked = int(lives.size[of_pass].sum())
        retained_bytes = int(lives.size[of_pass & (lives.gone > self.event)].sum())
        return retained_bytes >= RETAINED * max(1, asked)


_FEWEST: Final = 2
"""Passes that hold something, or blocks of a copy."""


def _grouped(group: Ints, chosen: Flags) -> Iterator[Ints]:
    """The chosen rows of each group, one group after the other; negative: of none."""
    for value in np.unique(group[chosen & (group >= 0)]).tolist():
        yield np.flatnonzero(chosen & (group == value))
