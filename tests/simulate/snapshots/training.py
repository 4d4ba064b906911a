"""A sharded transformer training that leaves a history: what, when and from which line.

Parameters are gathered on a side stream and used by the default one (so they stay pending
after their free), the autograd engine
frees activations, a foreach optimizer makes Adam's moments in the first step, and ranges
of the program are annotated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.simulate.snapshots.stacks import TrainingSites
from tests.simulate.snapshots.transformer import (
    BF16_BYTES,
    COMM_STREAM,
    FP32_BYTES,
    INT64_BYTES,
    TransformerShape,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulate.allocator.allocator import CachingAllocator
    from tests.simulate.allocator.blocks import Block
    from tests.simulate.history.history import History
    from tests.simulate.history.sites import Sites
    from tests.simulate.snapshots.stacks import Stacks

_SAVED_SITES = (
    "attention norm",
    "attention norm",
    "attention norm",
    "queries",
    "attention",
    "attention",
    "residual",
    "feed forward norm",
    "feed forward norm",
    "gate",
    "up",
    "product",
)
"""Of `TransformerShape.saved_tensors`, in its order."""

_DATA_LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


class TracedTraining:
    """Drives an allocator that has a history as one rank's training does.

    Attributes:
        num_steps: how many steps were begun.
        largest_bytes: the largest request that was served.
        live: the names of the sites that live blocks were allocated at.
        site: the name of the last one used.
    """

    def __init__(
        self,
        shape: TransformerShape,
        allocator: CachingAllocator,
        sites: Sites,
        *,
        seed: int = 0,
        stacks: Stacks = "all",
        resumed: bool = False,
        tag: Callable[[int], str] | None = None,
    ) -> None:
        """`resumed`: from a checkpoint, so that Adam's moments are there from the start.

        `tag`: user metadata of a step's allocations.

        Raises:
            ValueError: the allocator has no history.
            SimulatedOutOfMemoryError: the parameters do not fit.
        """
        if allocator.history is None:
            raise ValueError("a traced training needs an allocator with a history")
        self.shape = shape
        self.allocator = allocator
        self.history: History = allocator.history
        self.num_steps = 0
        self.largest_bytes = 0
        self.live: dict[Block, str] = {}
        self.site = ""
        self._sites = sites
        self._stacks = stacks
        self._tag = tag
        self._site = TrainingSites(sites, stacks)
        random = np.random.default_rng(seed)
        # Kernels are queued some microseconds apart, now and then much more.
        pauses = random.gamma(1.2, 9.0, 509) * random.choice([1, 1, 1, 12], 509)
        self._pauses = [int(pause) for pause in pauses]
        self._num_calls = 0
        self._embedding = shape.vocabulary * shape.hidden
        self._parameters = [self._shard("parameter", n) for n in self._all_tensors()]
        self._moments: list[Block] = []
        self._grads: list[Block] = []
        if resumed:
            self._make_moments()

    def step(self, tokens: int, *, at_loss: Callable[[], object] | None = None) -> None:
        """One training step over a batch of `tokens`; `at_loss` is called at its loss.

        Raises:
            SimulatedOutOfMemoryError: from the allocator; the training then ends.
        """
        self.num_steps += 1
        if self._tag is not None:
            tag = self._tag(self.num_steps)
            self._site = TrainingSites(self._sites, self._stacks, tag)
        history = self.history
        name = f"ProfilerStep#{self.num_steps}"
        history.annotate("START", name)
        history.annotate("START", _DATA_LOADER)
        batch = [self.new("batch", tokens * INT64_BYTES) for _ in range(2)]
        history.annotate("END", _DATA_LOADER)
        self._zero_grad()
        saved = self._forward(tokens)
        self._backward(tokens, saved, at_loss)
        self._update()
        for block in batch:
            self.drop("batch", block)
        history.now_us += 2000
        history.annotate("END", name)

    def new(self, site: str, num_bytes: int, stream: int = 0) -> Block:
        """Allocate at a site, a little later than the last call."""
        self._wait(site)
        block = self.allocator.allocate(num_bytes, stream)
        self.largest_bytes = max(self.largest_bytes, num_bytes)
        self.live[block] = site
        return block

    def drop(self, site: str, block: Block) -> None:
        """Free at a site."""
        self._wait(site)
        del self.live[block]
        self.allocator.free(block)

    def passing(self, site: str, num_bytes: int) -> None:
        """Allocate and free at once, as what one kernel needs."""
        self.drop(site, self.new(site, num_bytes))

    def _wait(self, site: str) -> None:
        self._num_calls += 1
        self.history.now_us += self._pauses[self._num_calls % 509]
        self.site = site
        self.history.site = self._site[site]

    def _forward(self, tokens: int) -> list[list[Block]]:
        shape = self.shape
        sizes = shape.saved_tensors(tokens)
        saved = [[self.new("embedding", tokens * shape.hidden * BF16_BYTES)]]
        gathered = self._gather("gather")
        for layer in range(shape.num_layers):
            ahead = self._gather("gather") if layer + 1 < shape.num_layers else None
            kept = []
            for site, size in zip(_SAVED_SITES, sizes, strict=True):
                kept.append(self.new(site, size))
                if site in ("gate", "queries"):
                    self.passing("cast", size)
            saved.append(kept)
            if ahead is not None:
                self._reshard("gather", gathered)
                gathered = ahead
        self._reshard("gather", gathered)
        return saved

    def _backward(
        self,
        tokens: int,
        saved: list[list[Block]],
        at_loss: Callable[[], object] | None,
    ) -> None:
        shape = self.shape
        row = tokens * BF16_BYTES
        self._loss(tokens, at_loss)
        upstream = self.new("gradient", row * shape.hidden)
        gathered = self._gather("backward gather")
        for layer in reversed(range(shape.num_layers)):
            ahead = self._gather("backward gather") if layer else None
            unsharded = self.new("gradient", shape.layer_elements * BF16_BYTES)
            kept = saved.pop()
            wide = [
                self.new("activation gradient", row * shape.feed_forward)
                for _ in range(2)
            ]
            for block in (*reversed(kept[7:]), *wide):
                self.drop("activation gradient", block)
            narrow = self.new("attention gradient", row * 3 * shape.hidden)
            downstream = self.new("norm gradient", row * shape.hidden)
            for block in (*reversed(kept[:7]), narrow, upstream):
                self.drop("attention gradient", block)
            upstream = downstream
            self._grads += [self._shard("reduce", n) for n in shape.layer_tensors]
            self.drop("reduce", unsharded)
            self._reshard("backward gather", gathered)
            if ahead is not None:
                gathered = ahead
        self.drop("gradient", upstream)
        self.drop("gradient", saved.pop()[0])
        self._grads.append(self._shard("accumulate", self._embedding))
        self._wait("accumulate")
        self.allocator.synchronize(0)

    def _loss(self, tokens: int, at_loss: Callable[[], object] | None) -> None:
        elements = tokens * self.shape.vocabulary
        logits = self.new("logits", elements * BF16_BYTES)
        wide = self.new("wide logits", elements * FP32_BYTES)
        loss = self.new("loss", FP32_BYTES)
        if at_loss is not None:
            at_loss()
        gradient = self.new("logits gradient", elements * FP32_BYTES)
        for block in (wide, logits, gradient, loss):
            self.drop("logits gradient", block)
        self._grads.append(self._shard("accumulate", self._embedding))

    def _update(self) -> None:
        history = self.history
        history.annotate("START", "Optimizer.step#AdamW.step")
        if not self._moments:
            self._make_moments()
        for elements in self.shape.layer_tensors[:5]:
            self.passing("update", self._share(elements))
        history.annotate("END", "Optimizer.step#AdamW.step")

    def _make_moments(self) -> None:
        for elements in self._all_tensors():
            self._moments.append(self.new("moments", FP32_BYTES))
            self._moments += [self._shard("moments", elements) for _ in range(2)]

    def _zero_grad(self) -> None:
        self.history.annotate("START", "Optimizer.zero_grad#AdamW.zero_grad")
        for block in self._grads:
            self.drop("zero grad", block)
        self._grads.clear()
        self.history.annotate("END", "Optimizer.zero_grad#AdamW.zero_grad")

    def _gather(self, site: str) -> Block:
        """Parameters of a layer, gathered on the side stream for the default one."""
        num_bytes = self.shape.layer_elements * BF16_BYTES
        block = self.new(site, num_bytes, COMM_STREAM)
        self.allocator.record_stream(block, 0)
        return block

    def _reshard(self, site: str, gathered: Block) -> None:
        """Free gathered parameters: those dropped a layer ago are free from now on."""
        self._wait(site)
        self.allocator.synchronize(0)
        self.drop(site, gathered)

    def _all_tensors(self) -> list[int]:
        layers = self.shape.layer_tensors * self.shape.num_layers
        return [self._embedding, *layers, self._embedding]

    def _share(self, elements: int) -> int:
        return max(1, -(-elements // self.shape.num_shards)) * FP32_BYTES

    def _shard(self, site: str, elements: int) -> Block:
        return self.new(site, self._share(elements))


def training_shape_for(
    total_bytes: int,
    *,
    state_share: float,
    activation_share: float,
    num_layers: int,
    vocabulary: int = 32_000,
) -> TransformerShape:
    """A model whose state and largest batch take these shares of a device."""
    hidden = 4096 if total_bytes >= 64 << 30 else 2048
    draft = TransformerShape(
        num_layers=num_layers,
        hidden=hidden,
        feed_forward=hidden * 43 // 16,
        num_heads=hidden // 128,
        vocabulary=vocabulary,
        num_shards=1,
        max_tokens=0,
    )
    # Parameters, gradients and both moments in fp32.
    state = draft.num_parameters * 4 * FP32_BYTES
    shards = max(1, round(state / (state_share * total_bytes)))
    logits = draft.vocabulary * (BF16_BYTES + 2 * FP32_BYTES)
    per_token = num_layers * draft.activation_bytes(1) + logits
    tokens = int(activation_share * total_bytes / per_token)
    return TransformerShape(
        num_layers=num_layers,
        hidden=hidden,
        feed_forward=draft.feed_forward,
        num_heads=draft.num_heads,
        vocabulary=draft.vocabulary,
        num_shards=shards,
        max_tokens=max(64, tokens // 64 * 64),
    )
