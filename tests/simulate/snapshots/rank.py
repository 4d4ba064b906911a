"""One rank of a training that may run out of memory, and what can be done to it.

Each `plant_...` makes one kind of trouble and returns the bytes it took. All of them go
through the allocator, so the history shows them as a real one would.
"""

from __future__ import annotations

import gc
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tests.simulate.allocator.allocator import CachingAllocator
from tests.simulate.allocator.blocks import DEFAULT_POOL
from tests.simulate.allocator.device import DeviceMemory
from tests.simulate.allocator.settings import (
    DEFAULT_SETTINGS,
    GIB,
    KIB,
    MIB,
    AllocatorSettings,
)
from tests.simulate.allocator.stats import ACTIVE
from tests.simulate.history.history import History
from tests.simulate.history.sites import Sites
from tests.simulate.snapshots.events import snapshot
from tests.simulate.snapshots.training import TracedTraining, training_shape_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from tests.simulate.allocator.blocks import Block, PoolId
    from tests.simulate.snapshots.form import Form
    from tests.simulate.snapshots.stacks import Stacks
    from tests.simulate.snapshots.transformer import TransformerShape

PREFETCH_STREAM: Final = 2
GRAPH_POOL: Final[PoolId] = (0, 1)

_KEPT_SITES: Final = frozenset(
    (
        "parameter",
        "moments",
        "reduce",
        "accumulate",
        "feature cache",
        "prefetch index",
        "kept outputs",
        "graph output",
        "noise",
    )
)
"""Live on when an exception unwinds the step that raised it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What the ranks of a case have in common."""

    total_bytes: int
    context_bytes: int
    """What the driver and the communication library always take."""
    shape: TransformerShape
    settings: AllocatorSettings = DEFAULT_SETTINGS
    max_entries: int | None = None
    stacks: Stacks = "all"
    resumed: bool = False
    """From a checkpoint: the optimizer's state is there before the first step."""


class SimulatedRank:
    """A training, its allocator and its history.

    Whatever allocates may raise `SimulatedOutOfMemoryError`.
    """

    def __init__(
        self,
        machine: Machine,
        seed: int,
        *,
        tag: Callable[[int], str] | None = None,
    ) -> None:
        """`tag`: user metadata of a step's allocations."""
        self.machine = machine
        self.random = np.random.default_rng(seed)
        self.device = DeviceMemory(
            machine.total_bytes, non_torch_bytes=machine.context_bytes
        )
        self.history = History(machine.max_entries)
        self.sites = Sites()
        self.allocator = CachingAllocator(
            machine.total_bytes,
            machine.settings,
            device=self.device,
            history=self.history,
        )
        self.training = TracedTraining(
            machine.shape,
            self.allocator,
            self.sites,
            seed=seed,
            stacks=machine.stacks,
            resumed=machine.resumed,
            tag=tag,
        )
        self._queue: list[Block] = []

    def step(self, tokens: int, *, at_loss: Callable[[], object] | None = None) -> None:
        """One training step, with small allocations that come and go around it.

        Raises:
            SimulatedOutOfMemoryError: from the allocator.
        """
        training = self.training
        for size in self.random.integers(200, 3 * MIB, 6).tolist():
            self._queue.append(training.new("noise", size))
        training.step(tokens, at_loss=at_loss)
        while len(self._queue) > 12:
            training.drop("noise", self._queue.pop(0))

    def plant_growth(self, num_bytes: int, pieces: int, site: str) -> int:
        """Keep so much for ever, as does a list that every step appends to."""
        for _ in range(pieces):
            self.training.new(site, num_bytes // pieces)
        return num_bytes // pieces * pieces

    def plant_outside(self, num_bytes: int) -> int:
        """Something that is not torch takes what the device has left, at most this."""
        taken = min(num_bytes, self.device.free_bytes)
        self.device.non_torch_bytes += taken
        return taken

    def plant_holes(self, num_bytes: int, count: int) -> int:
        """Leave `count` free blocks that nothing can join, each pinned by a small live one.

        A prefill fills segments, small features are cached behind its outputs, and the
        outputs go. Returns the bytes of the holes.

        Raises:
            SimulatedOutOfMemoryError: there is not that much.
        """
        training = self.training
        share = num_bytes // count
        wide = [
            share * 9 // 10 // MIB * MIB + 4 * MIB * place for place in range(count)
        ]
        pins = [24 * MIB + 4 * MIB * place for place in range(count)]
        pairs = list(zip(wide, pins, strict=True))
        whole = [training.new("prefill", hole + pin) for hole, pin in pairs]
        for block in whole:
            training.drop("prefill", block)
        outputs = [training.new("prefill", hole) for hole in wide]
        for pin in pins:
            training.new("feature cache", pin)
        for block in outputs:
            training.drop("prefill", block)
        return sum(wide)

    def plant_other_stream(self, num_bytes: int) -> int:
        """A free block that only the prefetch stream may use, pinned by a small live one.

        Raises:
            SimulatedOutOfMemoryError: there is not that much.
        """
        training, stream = self.training, PREFETCH_STREAM
        pin = 24 * MIB
        training.drop("prefetch", training.new("prefetch", num_bytes + pin, stream))
        buffer = training.new("prefetch", num_bytes, stream)
        training.new("prefetch index", pin, stream)
        training.drop("prefetch", buffer)
        return num_bytes

    def plant_graph_pool(self, num_bytes: int) -> int:
        """Free memory that only replays of a CUDA graph may use.

        Raises:
            SimulatedOutOfMemoryError: there is not that much.
        """
        training = self.training
        self.allocator.use_pool(GRAPH_POOL)
        training.new("graph output", 3 * MIB)
        training.drop("graph", training.new("graph", num_bytes))
        self.allocator.use_pool(None)
        return num_bytes

    def room_bytes(self) -> int:
        """The largest request that segments given back in a retry would make room for."""
        cached = sum(
            block.size_bytes
            for arena in self.allocator.arenas()
            for _, _, block in arena.free
            if not block.is_split and arena.pool_id == DEFAULT_POOL
        )
        return self.device.free_bytes + cached

    def largest_hole_bytes(self) -> int:
        """The largest free block of the default pool and stream that stays in a retry."""
        return max(
            (
                block.size_bytes
                for arena in self.allocator.arenas()
                for _, _, block in arena.free
                if block.is_split and (arena.pool_id, arena.stream) == (DEFAULT_POOL, 0)
            ),
            default=0,
        )

    def empty_cache(self) -> None:
        """The program gives its cached memory back."""
        self.training.history.now_us += 500
        self.allocator.empty_cache()

    def unwind(self) -> None:
        """The exception leaves the step: whatever only its frames held is freed."""
        training = self.training
        doomed = [b for b, site in training.live.items() if site not in _KEPT_SITES]
        for block in doomed:
            training.drop(training.live[block], block)

    def live_bytes_by_site(self) -> dict[str, int]:
        """What the live blocks of each site were asked for, largest first."""
        held: dict[str, int] = {}
        for block, site in self.training.live.items():
            held[site] = held.get(site, 0) + block.requested_bytes
        return dict(sorted(held.items(), key=lambda item: -item[1]))

    def snapshot(self, form: Form) -> dict[str, Any]:
        """Its snapshot, as of now."""
        return snapshot([self.allocator], self.sites, form)

    def write(self, path: Path, form: Form, *, protocol: int = 4) -> None:
        """Write its snapshot as `torch.cuda.memory._dump_snapshot` does."""
        gc.disable()  # it would walk millions of events again and again
        try:
            with path.open("wb") as file:
                pickle.dump(self.snapshot(form), file, protocol)
        finally:
            gc.enable()


def trained_rank(
    num_events: int,
    *,
    seed: int = 0,
    settings: AllocatorSettings = DEFAULT_SETTINGS,
    max_entries: int | None = None,
    stacks: Stacks = "all",
    total_bytes: int = 80 * GIB,
    graph_pool: bool = False,
) -> SimulatedRank:
    """A healthy training whose allocator did at least `num_events` things.

    Batches differ in length, and some memory is kept of one step in fifty. With
    `graph_pool` a CUDA graph was captured before the first step.
    """
    shape = training_shape_for(
        total_bytes, state_share=0.2, activation_share=0.45, num_layers=12
    )
    machine = Machine(
        total_bytes=total_bytes,
        context_bytes=600 * MIB,
        shape=shape,
        settings=settings,
        max_entries=max_entries,
        stacks=stacks,
    )
    rank = SimulatedRank(machine, seed)
    if graph_pool:
        rank.plant_graph_pool(total_bytes // 100)
    while rank.history.num_recorded < num_events:
        fill = float(rank.random.beta(3.0, 1.2))
        rank.step(max(64, int(shape.max_tokens * (0.65 + 0.35 * fill)) // 64 * 64))
        if rank.training.num_steps % 50 == 0:
            rank.plant_growth(2 * MIB, 1, "kept outputs")
    return rank


def active_peak(machine: Machine, tokens: int, stat: int = ACTIVE) -> int:
    """Most bytes in use over the first two steps, had the device no end.

    `stat`: what is counted, for example `ALLOCATED`, which pending frees are no part of.
    """
    endless = Machine(
        total_bytes=1 << 50,
        context_bytes=0,
        shape=machine.shape,
        max_entries=0,
        stacks="python",
    )
    rank = SimulatedRank(endless, 0)
    for _ in range(2):
        rank.training.step(tokens)
    return rank.allocator.stats.get_peak(stat)


def tokens_for(machine: Machine, peak_bytes: int) -> int:
    """Tokens of the batch whose step peaks within a percent of `peak_bytes`.

    By secants: what a step holds is piecewise linear in its tokens, up to rounding.
    """
    before, tokens = 64, machine.shape.max_tokens
    at_before, at_tokens = active_peak(machine, before), active_peak(machine, tokens)
    for _ in range(8):
        if abs(at_tokens - peak_bytes) <= 0.01 * peak_bytes or at_tokens == at_before:
            break
        slope = (at_tokens - at_before) / (tokens - before)
        before, at_before = tokens, at_tokens
        tokens = max(64, int(tokens + (peak_bytes - at_tokens) / slope))
        at_tokens = active_peak(machine, tokens)
    return tokens


def make_machine(
    random: np.random.Generator, *, expandable: bool, resumed: bool
) -> Machine:
    """A device, a model for it and a way to record, drawn at random."""
    total = int(random.choice([24, 40, 48, 80, 141])) * GIB
    total -= int(random.integers(100, 900)) * MIB
    layers = int(random.integers(5, 11))
    shape = training_shape_for(
        total,
        state_share=float(random.uniform(0.12, 0.3)),
        activation_share=0.4,
        num_layers=layers,
        vocabulary=int(random.choice([4_000, 8_000, 32_000])),
    )
    text = "expandable_segments:True" if expandable else ""
    return Machine(
        total_bytes=total,
        context_bytes=int(random.integers(400, 900)) * MIB + 4 * KIB,
        shape=shape,
        settings=AllocatorSettings(text=text, expandable_segments=expandable),
        max_entries=int(random.choice([6_000, 100_000])),
        stacks="python" if random.random() < 0.5 else "all",
        resumed=resumed,
    )
