"""Sizes of a fully sharded transformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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
