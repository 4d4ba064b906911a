"""Attention: 2 B H Sq Sk (Dqk + Dv) FLOP forward, for H heads of queries.

FlashAttention's backward computes the scores again: five matrix multiplications for two
(Dao et al. 2022, algorithm 4), as `torch.utils.flop_counter` counts it. Causal, where
Sq = Sk: half. Masks and softmax do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.analysis.efficiency.arguments import OperatorWork

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.efficiency.arguments import (
        Arguments,
        Formula,
        Shape,
    )


@dataclass(frozen=True, slots=True)
class _Attention:
    """Places of the arguments of one operator."""

    causal: int
    """A flag, or a number that is 0 where all is attended to."""
    query: int = 0
    """Place of the query; key and value follow."""
    heads_first: bool = True
    """(B, H, S, D), else (B, S, H, D)."""
    is_backward: bool = False
    lengths: int | None = None
    """Of packed sequences, which are not among the shapes: their FLOP are not known."""
    window: int | None = None
    """Left size of a sliding window, the right one follows; -1: none."""

    def __call__(self, arguments: Arguments) -> OperatorWork | None:
        shapes = [arguments.shape(self.query + place) for place in range(3)]
        element, causal = arguments.element(self.query), arguments.value(self.causal)
        if element is None or not isinstance(causal, int) or self._is_cut(arguments):
            return None
        if any(shape is None or len(shape) != 4 for shape in shapes):
            return None
        query, key, value = (self._heads_first(shape) for shape in shapes if shape)
        batch, num_heads, num_queries, depth = query
        num_keys, value_depth = key[2], value[3]
        if causal and num_queries != num_keys:
            return None  # Which half is masked differs between implementations.
        depths = depth + value_depth
        if self.is_backward:
            depths = 3 * depth + 2 * value_depth
        flop = 2 * batch * num_heads * num_queries * num_keys * depths
        moved = batch * num_heads * num_queries * value_depth * element.num_bytes
        moved += sum(arguments.num_bytes(self.query + place) for place in range(3))
        text = f"B={batch}, H={num_heads}, Sq={num_queries}, Sk={num_keys}, D={depth}"
        return OperatorWork(
            kind="attention",
            flop=flop // 2 if causal else flop,
            # Backward reads the output and its gradient too, and writes three gradients.
            moved_bytes=2 * moved if self.is_backward else moved,
            element=element.name,
            sizes=f"{text}, causal" if causal else text,
        )

    def _is_cut(self, arguments: Arguments) -> bool:
        """Whether not all keys are attended to, by what shapes do not tell."""
        if self.lengths is not None and arguments.shape(self.lengths):
            return True
        if self.window is None:
            return False
        places = self.window, self.window + 1
        return any(arguments.value(place) != -1 for place in places)

    def _heads_first(self, shape: Shape) -> Shape:
        if self.heads_first:
            return shape
        return shape[0], shape[2], shape[1], shape[3]


FORMULAS: Final[dict[str, Formula]] = {
    "aten::scaled_dot_product_attention": _Attention(causal=5),
    "aten::_scaled_dot_product_flash_attention": _Attention(causal=4),
    "aten::_scaled_dot_product_efficient_attention": _Attention(causal=6),
    "aten::_scaled_dot_product_cudnn_attention": _Attention(causal=6),
    "aten::_scaled_dot_product_fused_attention_overrideable": _Attention(causal=5),
    "aten::_flash_attention_forward": _Attention(
        causal=8, heads_first=False, lengths=3
    ),
    "aten::_efficient_attention_forward": _Attention(
        causal=9, heads_first=False, lengths=4
    ),
    "aten::_cudnn_attention_forward": _Attention(causal=10, lengths=4),
    "aten::_scaled_dot_product_flash_attention_backward": _Attention(
        causal=11, query=1, is_backward=True
    ),
    "aten::_scaled_dot_product_efficient_attention_backward": _Attention(
        causal=11, query=1, is_backward=True
    ),
    "aten::_scaled_dot_product_cudnn_attention_backward": _Attention(
        causal=14, query=1, is_backward=True
    ),
    "aten::_flash_attention_backward": _Attention(
        causal=11, query=1, heads_first=False, is_backward=True, lengths=6
    ),
    "aten::_efficient_attention_backward": _Attention(
        causal=14, query=1, heads_first=False, is_backward=True, lengths=6
    ),
    "FlashAttnFunc": _Attention(causal=5, heads_first=False),
    "flash_attn::_flash_attn_forward": _Attention(
        causal=5, heads_first=False, window=6
    ),
    "flash_attn::_flash_attn_backward": _Attention(
        causal=11, query=1, heads_first=False, is_backward=True, window=12
    ),
}
