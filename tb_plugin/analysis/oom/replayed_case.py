"""The state of a replayed history at an out-of-memory error.

The end of a snapshot says nothing of it: by then the exception has let go of whatever
the step held. The allocator gave back all it could before it gave up, so what is free
at the event itself is what no rule allowed it to use.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.allocator.lifetimes import ALLOC, BEFORE, SEGMENT_MAP
from memboard.tb_plugin.analysis.allocator.live import live_rows
from memboard.tb_plugin.analysis.allocator.moment.arenas import arenas
from memboard.tb_plugin.analysis.allocator.moment.fit import fit
from memboard.tb_plugin.analysis.arrays import largest_groups
from memboard.tb_plugin.analysis.categories.passes import TRAINING
from memboard.tb_plugin.analysis.findings.conditions import Setup, memory_fraction_in
from memboard.tb_plugin.analysis.oom.case import (
    Elsewhere,
    FreeBlocks,
    OomFacts,
    PendingFrees,
    Place,
)
from memboard.tb_plugin.analysis.oom.growth_until_error import captured_pools, growth_at
from memboard.tb_plugin.analysis.oom.holders import Holding
from memboard.tb_plugin.analysis.snapshots.snapshot import MAX_BYTES

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.allocator.replay import Replay
    from memboard.tb_plugin.analysis.allocator.segments import SegmentState
    from memboard.tb_plugin.analysis.arrays import Ints


MAX_NAMED: Final = 3
"""Streams and lines of pending frees that are named."""

LOST: Final = 0.05
"""Memory from before the first event is worth a word from this share of the live on."""


def facts_at(replay: Replay, event: int, step: Ints | None = None) -> OomFacts:
    """The facts at an oom event of a device.

    `step`: of each event, negative where it is not known; None: of none.
    """
    device = replay.device
    events, lives = device.events, replay.lives
    asked = int(events.size[event])
    free = int(events.device_free[event])
    state = replay.at(event)
    blocks, elsewhere = _free(replay, state, event, asked)
    before = live_rows(lives, event)
    before = before[lives.born[before] == BEFORE]
    active = int(replay.active.after[event])
    segments = state.segments
    private = segments.pool > 0
    others = private & (segments.pool != int(events.pool[event]))
    return OomFacts(
        requested_bytes=asked,
        device_free_bytes=free if 0 <= free <= MAX_BYTES else None,
        reserved_bytes=int(replay.reserved.levels.after[event]),
        allocated_bytes=int(replay.allocated.after[event]),
        active_bytes=active,
        private_pool_bytes=int(segments.total_size[private].sum()),
        private_free_bytes=int(segments.free_size[others].sum()),
        num_private_pools=len(np.unique(segments.pool[others])),
        knows_pool=int(events.pool[event]) >= 0,
        is_of_pool=int(events.pool[event]) > 0,
        captured=_captured(replay, state, event),
        pending=_pending(replay, event),
        free=blocks,
        elsewhere=elsewhere,
        largest_before_bytes=_largest_before(replay, event),
        largest_here_bytes=_largest_here(replay, event),
        most_reserved_bytes=max(
            replay.reserved.levels.first,
            int(replay.reserved.levels.after[: event + 1].max()),
        ),
        growth=growth_at(replay, event, step),
        beginning_is_lost=int(lives.size[before].sum()) > LOST * max(1, active),
    )


def _captured(replay: Replay, state: SegmentState, event: int) -> Holding | None:
    """The pools that were filled at one go, the request's own left out."""
    segments = state.segments
    rows = captured_pools(replay)
    rows = rows[rows != int(replay.device.events.pool[event])]
    chosen = np.isin(segments.pool, rows)
    if not chosen.any():
        return None
    present = np.unique(segments.pool[chosen]).tolist()
    size = segments.total_size[chosen]
    are_of_graphs = all(replay.snapshot.pools[row][0] != 0 for row in present)
    return Holding(
        kind="graph_pools" if are_of_graphs else "program_pools",
        num=len(present),
        num_bytes=int(size.sum()),
        free_bytes=int(segments.free_size[chosen].sum()),
        lines=replay.stacks.largest(segments.stack[chosen], size, MAX_NAMED),
    )


def _free(
    replay: Replay, state: SegmentState, event: int, asked: int
) -> tuple[FreeBlocks, Elsewhere | None]:
    """Free blocks where the request belongs, and the largest that was kept from it."""
    events = replay.device.events
    pool, stream = max(0, int(events.pool[event])), int(events.stream[event])
    fitting = fit(state, replay.rounding, asked, pool=pool, stream=stream)
    by_place = arenas(state)
    here = (np.maximum(by_place.pool, 0) == pool) & (by_place.stream == stream)
    here &= by_place.is_large == fitting.is_large
    free = FreeBlocks(
        num_bytes=fitting.free,
        largest_bytes=fitting.largest,
        num_blocks=int(by_place.num_free[here].sum()),
    )
    kept: list[tuple[int, Place]] = [
        (fitting.other_stream_largest, "stream"),
        (fitting.other_pool_largest, "pool"),
    ]
    if fitting.largest >= fitting.size and not fitting.fits:
        kept.append((fitting.largest, "split"))
    largest, place = max(kept, key=lambda size_and_place: size_and_place[0])
    if fitting.fits and _knows_pool(replay, event):
        largest, place = int(state.blocks.size[fitting.block]), "here"
    return free, Elsewhere(largest, place) if largest else None


def _knows_pool(replay: Replay, event: int) -> bool:
    """Whether it is known of which pool a request is.

    Torch records it from 2.13 on. Before, it is of the ordinary one where no other has been
    in use, or where the last allocation before it was of that.
    """
    if int(replay.device.events.pool[event]) >= 0:
        return True
    born = replay.lives.born
    before = np.flatnonzero((born < event) & (born != BEFORE))
    if not len(before):
        return not bool((replay.pool > 0).any())
    return int(replay.pool[before[np.argmax(born[before])]]) <= 0


def _pending(replay: Replay, event: int) -> PendingFrees:
    """What was freed and still waits for another stream."""
    lives = replay.lives
    rows = live_rows(lives, event)
    rows = rows[lives.freed[rows] <= event]
    size = replay.block_sizes(rows).size
    stream, stream_bytes, _ = largest_groups(replay.stream[rows], size, MAX_NAMED)
    streams = zip(stream.tolist(), stream_bytes.tolist(), strict=True)
    return PendingFrees(
        num_bytes=int(size.sum()),
        num_blocks=len(rows),
        streams=tuple(
            (_stream(replay, stream), num_bytes) for stream, num_bytes in streams
        ),
        lines=replay.stacks.largest(lives.stack[rows], size, MAX_NAMED),
    )


def _stream(replay: Replay, row: int) -> str:
    """A stream's name: the default one has no pointer."""
    if row < 0:
        return "a stream that was not recorded"
    pointer = replay.snapshot.streams[row]
    return "the default stream" if pointer == 0 else f"stream {pointer:#x}"


def _largest_before(replay: Replay, event: int) -> int | None:
    """The largest request served before; None where none is known."""
    events, lives = replay.device.events, replay.lives
    served = events.size[:event][events.action[:event] == ALLOC]
    early = lives.size[lives.born == BEFORE]
    sizes = [int(column.max()) for column in (served, early) if len(column)]
    return max(sizes, default=None)


def _largest_here(replay: Replay, event: int) -> int | None:
    """The largest request that the same stack made before; None where it made none.

    Before the last backward or optimizer: each layer of the forward under way asks for
    as much at the same line.
    """
    events = replay.device.events
    stack = int(events.stack[event])
    if stack < 0:
        return None
    same = (events.action[:event] == ALLOC) & (events.stack[:event] == stack)
    trained = np.flatnonzero(
        replay.stacks.has(TRAINING)[events.stack[:event]]
        & (events.action[:event] == ALLOC)
    )
    same[int(trained[-1]) if len(trained) else 0 :] = False
    return int(events.size[:event][same].max()) if same.any() else None


_ENGINES: Final = re.compile(
    r"(^|[/\\])(vllm|sglang|verl|nemo_rl|lmdeploy|torch_memory_saver|rmm|cupy)[/\\]"
    r"|(^|[/\\])\w*(cumem|nccl_allocator|mem_?pool|pluggable)\w*\.py$",
    re.IGNORECASE,
)
"""Files of what brings an allocator of its own, or wakes and sleeps beside a training."""

_ON: Final = re.compile(r"expandable_segments\s*:\s*true", re.IGNORECASE)
"""In the variables as they were set, which newer releases may name otherwise."""

_RECOMPUTES: Final = re.compile(r"[/\\]torch[/\\]utils[/\\]checkpoint\.py$")
_SMALL_STATES: Final = re.compile(
    r"[/\\](bitsandbytes|torchao)[/\\]optim", re.IGNORECASE
)

_POOLS: Final = re.compile(
    r"^(use_mem_?pool|use_memory_pool|nccl_mem)$|Pluggable|MemPool"
)


def setup_of(replay: Replay) -> Setup:
    """What a snapshot says of how its process ran."""
    return Setup(
        expandable=_expandable(replay),
        other_allocator=_other_allocator(replay),
        on_gpu=True,
        records_history=True,
        keeps_stacks=True,
        recomputes=_has(replay, _RECOMPUTES),
        has_small_states=_has(replay, _SMALL_STATES),
        memory_fraction=memory_fraction_in(
            f"{setting}:{value}" for setting, value in replay.snapshot.settings.items()
        ),
    )


def _has(replay: Replay, filename: re.Pattern[str]) -> bool | None:
    """Whether a stack goes through such a file; None: nothing has a stack."""
    stacks = replay.stacks
    return bool(stacks.matching(None, filename)[:-1].any()) if len(stacks) else None


def _expandable(replay: Replay) -> bool | None:
    """Whether segments are expandable: some of them, or by a setting."""
    segments, settings = replay.device.segments, replay.snapshot.settings
    if segments.is_expandable.any() or replay.device.events.of_action(SEGMENT_MAP).size:
        return True
    named = [str(setting) for setting in settings.values() if isinstance(setting, str)]
    if any(_ON.search(setting) for setting in named):
        return True
    setting = settings.get("expandable_segments")
    if isinstance(setting, bool):
        return setting
    # Older snapshots do not say it, but would show it.
    return False if len(segments) else None


def _other_allocator(replay: Replay) -> bool | None:
    """Whether another allocator serves a part; None where nothing says it.

    A pool (0, n) is a `torch.cuda.MemPool`, whose allocator is not recorded, or one that
    graphs share; of (n, 0) CUDA graphs are the only users.
    """
    stacks = replay.stacks
    if stacks.matching(_POOLS, _ENGINES)[:-1].any():
        return True
    if any(first == 0 and second > 0 for first, second in replay.snapshot.pools):
        return None
    return False if len(stacks) else None
