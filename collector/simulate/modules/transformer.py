"""A fully sharded transformer training, as the allocator sees it.

Each layer's parameters are one flat fp32 shard; for its forward and its backward they
are gathered in bf16 and dropped again (the next layer is gathered while this one
computes). Forward keeps the activations that backward needs; backward frees them layer
by layer and reduces gradients into fp32 shards; the first optimizer step creates Adam's
two moments. The number of tokens varies from batch to batch, which is what fragments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collector.simulate.allocator.allocator import CachingAllocator
    from collector.simulate.allocator.blocks import Block

COMM_STREAM: Final = 1

BF16_BYTES: Final = 2
FP32_BYTES: Final = 4
INT64_BYTES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerShape:
    """Sizes of the model and of its largest batch on one rank."""

    num_layers: int
    hidden: int
    feed_forward: int
    num_heads: int
    vocabulary: int
    num_shards: int
    """Ranks that share one copy of the parameters."""
    max_tokens: int
    """Tokens of the largest batch."""

    @property
    def layer_tensors(self) -> tuple[int, ...]:
        """Elements of each parameter of one layer."""
        h, f = self.hidden, self.feed_forward
        return (h * 3 * h, h * h, h * f, h * f, f * h, h, h)

    @property
    def layer_elements(self) -> int:
        """Elements of one layer."""
        return sum(self.layer_tensors)

    @property
    def num_parameters(self) -> int:
        """Elements of the whole model; input and output embeddings are not tied."""
        return self.num_layers * self.layer_elements + 2 * self.vocabulary * self.hidden

    def activation_bytes(self, tokens: int) -> int:
        """What the forward of one layer leaves for its backward."""
        return sum(self.saved_tensors(tokens))

    def saved_tensors(self, tokens: int) -> tuple[int, ...]:
        """Bytes of each activation that one layer keeps, in the order it makes them."""
        row = tokens * BF16_BYTES
        h, f = self.hidden, self.feed_forward
        statistic = tokens * FP32_BYTES
        return (
            row * h,  # input of the attention norm
            statistic,  # its reciprocal deviation
            row * h,  # its output
            row * 3 * h,  # queries, keys, values
            row * h,  # attention output
            statistic * self.num_heads,  # log-sum-exp of the attention
            row * h,  # residual
            statistic,
            row * h,  # output of the feed-forward norm
            row * f,  # gate
            row * f,  # up
            row * f,  # their product
        )


def shape_for(num_shards: int, activation_budget_bytes: int) -> TransformerShape:
    """A model for `num_shards` devices and a largest batch that fills the budget.

    Activations and logits of that batch take `activation_budget_bytes`.
    """
    if num_shards >= 32:
        layers, hidden, feed_forward, heads = 40, 5120, 13824, 40  # 13 billion
    elif num_shards >= 8:
        layers, hidden, feed_forward, heads = 32, 4096, 11008, 32  # 7 billion
    else:
        layers, hidden, feed_forward, heads = 24, 2048, 5504, 16  # 1.3 billion
    shape = TransformerShape(
        num_layers=layers,
        hidden=hidden,
        feed_forward=feed_forward,
        num_heads=heads,
        vocabulary=32_000,
        num_shards=num_shards,
        max_tokens=0,
    )
    logits = shape.vocabulary * (BF16_BYTES + 2 * FP32_BYTES)
    per_token = shape.num_layers * shape.activation_bytes(1) + logits
    tokens = activation_budget_bytes // per_token // 128 * 128
    return TransformerShape(
        num_layers=layers,
        hidden=hidden,
        feed_forward=feed_forward,
        num_heads=heads,
        vocabulary=shape.vocabulary,
        num_shards=num_shards,
        max_tokens=max(tokens, 128),
    )


class TransformerTraining:
    """Drives an allocator as one rank's training does."""

    def __init__(self, shape: TransformerShape, allocator: CachingAllocator) -> None:
        self._shape = shape
        self._allocator = allocator
        self._embedding_elements = shape.vocabulary * shape.hidden
        self._moments: list[Block] = []
        self._parameters = [self._shard(elements) for elements in self._all_tensors()]

    def step(self, tokens: int) -> None:
        """Forward, backward and optimizer step over a batch of `tokens`.

        Raises:
            SimulatedOutOfMemoryError: from the allocator; the training then ends.
        """
        allocator = self._allocator
        batch = [allocator.allocate(tokens * INT64_BYTES) for _ in range(2)]
        saved = self._forward(tokens)
        grads = self._backward(tokens, saved)
        self._optimizer_step()
        for block in (*grads, *batch):
            allocator.free(block)

    def _forward(self, tokens: int) -> list[list[Block]]:
        shape, allocator = self._shape, self._allocator
        saved = [[allocator.allocate(tokens * shape.hidden * BF16_BYTES)]]
        gathered = self._gather(shape.layer_elements)
        sizes = shape.saved_tensors(tokens)
        for layer in range(shape.num_layers):
            ahead = None
            if layer + 1 < shape.num_layers:
                ahead = self._gather(shape.layer_elements)
            kept = []
            for size in sizes:
                kept.append(allocator.allocate(size))
                if size >= tokens * shape.feed_forward * BF16_BYTES:
                    # Casts and contiguous copies live as long as one kernel.
                    allocator.free(allocator.allocate(size))
            saved.append(kept)
            if ahead is not None:
                self._drop(gathered)
                gathered = ahead
        # The last layer stays gathered: backward begins with it.
        self._drop(gathered)
        return saved

    def _backward(self, tokens: int, saved: list[list[Block]]) -> list[Block]:
        shape, allocator = self._shape, self._allocator
        row = tokens * BF16_BYTES
        grads = self._loss(tokens)
        upstream = allocator.allocate(row * shape.hidden)
        gathered = self._gather(shape.layer_elements)
        for layer in reversed(range(shape.num_layers)):
            ahead = self._gather(shape.layer_elements) if layer else None
            unsharded = allocator.allocate(shape.layer_elements * BF16_BYTES)
            wide = [allocator.allocate(row * shape.feed_forward) for _ in range(3)]
            kept = saved.pop()
            for block in reversed(kept[7:]):
                allocator.free(block)
            for block in wide:
                allocator.free(block)
            narrow = allocator.allocate(row * 3 * shape.hidden)
            downstream = allocator.allocate(row * shape.hidden)
            for block in reversed(kept[:7]):
                allocator.free(block)
            allocator.free(narrow)
            allocator.free(upstream)
            upstream = downstream
            grads += self._reduce(unsharded)
            self._drop(gathered)
            if ahead is not None:
                gathered = ahead
        allocator.free(upstream)
        allocator.free(saved.pop()[0])
        allocator.synchronize(COMM_STREAM)
        grads.append(self._shard(self._embedding_elements))
        return grads

    def _loss(self, tokens: int) -> list[Block]:
        """Logits, their fp32 copy and their gradient: often the peak of a step."""
        shape, allocator = self._shape, self._allocator
        elements = tokens * shape.vocabulary
        logits = allocator.allocate(elements * BF16_BYTES)
        wide = allocator.allocate(elements * FP32_BYTES)
        losses = allocator.allocate(tokens * FP32_BYTES)
        gradient = allocator.allocate(elements * FP32_BYTES)
        for block in (wide, losses, logits, gradient):
            allocator.free(block)
        return [self._shard(self._embedding_elements)]

    def _optimizer_step(self) -> None:
        shape, allocator = self._shape, self._allocator
        if not self._moments:
            for elements in self._all_tensors():
                self._moments.append(allocator.allocate(FP32_BYTES))  # step count
                self._moments += [self._shard(elements) for _ in range(2)]
        # The fused update walks the shards in groups and needs one group's room.
        for _ in range(4):
            size = -(-shape.layer_elements // shape.num_shards) * FP32_BYTES
            allocator.free(allocator.allocate(size))

    def _gather(self, elements: int) -> Block:
        """Gathered parameters; the copy-out runs on the communication stream too."""
        block = self._allocator.allocate(elements * BF16_BYTES)
        self._allocator.record_stream(block, COMM_STREAM)
        return block

    def _drop(self, gathered: Block) -> None:
        """Free gathered parameters, which stay active until the next ones are dropped.

        Only then has the communication stream caught up with them.
        """
        self._allocator.synchronize(COMM_STREAM)
        self._allocator.free(gathered)

    def _reduce(self, unsharded: Block) -> list[Block]:
        """Reduce-scatter: a bf16 gradient of the layer becomes fp32 shards."""
        grads = [self._shard(elements) for elements in self._shape.layer_tensors]
        self._allocator.free(unsharded)
        return grads

    def _all_tensors(self) -> list[int]:
        layers = self._shape.layer_tensors * self._shape.num_layers
        return [self._embedding_elements, *layers, self._embedding_elements]

    def _shard(self, elements: int) -> Block:
        """This rank's fp32 part of a tensor."""
        share = max(1, -(-elements // self._shape.num_shards))
        return self._allocator.allocate(share * FP32_BYTES)
