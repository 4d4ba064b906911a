"""Matrix multiplications: 2 M N K FLOP for (M, K) x (K, N), and M N for a bias.

As TraceLens' `GEMM` counts them; `torch.utils.flop_counter` leaves out the bias.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from memboard.tb_plugin.analysis.efficiency.arguments import OperatorWork

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.efficiency.arguments import (
        Arguments,
        Formula,
        Shape,
    )

_HALF_BYTES: Final = 2
"""Of an element of the output, where operands of 8 bits give one of 16."""


class _Sizes(NamedTuple):
    """`batch` multiplications (M, K) x (K, N) into `num_outputs` matrices (M, N)."""

    m: int
    n: int
    k: int
    batch: int = 1
    num_outputs: int = 1


def _work(
    arguments: Arguments,
    sizes: _Sizes,
    operands: tuple[int, int],
    bias: int | None = None,
) -> OperatorWork | None:
    """`operands`, `bias`: their places among the arguments."""
    element = arguments.element(operands[0])
    if element is None:
        return None
    m, n, k, batch, num_outputs = sizes
    k *= element.num_packed
    out_bytes = max(element.num_bytes, _HALF_BYTES)
    flop = 2 * batch * m * n * k
    moved = sum(arguments.num_bytes(place) for place in operands)
    moved += num_outputs * m * n * out_bytes
    if bias is not None and arguments.shape(bias):
        flop += batch * m * n
        moved += arguments.num_bytes(bias)
    text = f"M={m}, N={n}, K={k}"
    return OperatorWork(
        kind="matmul",
        flop=flop,
        moved_bytes=moved,
        element=element.name,
        sizes=f"B={batch}, {text}" if batch > 1 else text,
        num_rows=m,
    )


def _product(first: int, bias: int | None = None) -> Formula:
    """(..., M, K) x (..., K, N), whose first operand stands at a place."""

    def formula(arguments: Arguments) -> OperatorWork | None:
        a, b = arguments.shape(first), arguments.shape(first + 1)
        if not a or not b:
            return None
        a = (1, *a) if len(a) == 1 else a
        b = (*b, 1) if len(b) == 1 else b
        if a[-1] != b[-2]:
            return None
        if len(b) == 2:
            # All matrices on the left are rows of one.
            sizes = _Sizes(math.prod(a[:-1]), b[-1], a[-1])
        else:
            batch = max(math.prod(a[:-2]), math.prod(b[:-2]))
            sizes = _Sizes(a[-2], b[-1], a[-1], batch, num_outputs=batch)
        return _work(arguments, sizes, (first, first + 1), bias)

    return formula


def _linear(arguments: Arguments) -> OperatorWork | None:
    """Input (..., K), weight (N, K), bias."""
    source, weight = arguments.shape(0), arguments.shape(1)
    if not source or weight is None or len(weight) != 2 or source[-1] != weight[1]:
        return None
    sizes = _Sizes(math.prod(source[:-1]), weight[0], weight[1])
    return _work(arguments, sizes, (0, 1), bias=2)


def _grouped(offsets: int) -> Formula:
    """Groups along rows, columns or the inner size, which together are all of these.

    `offsets`: where those stand at which groups end. The groups of three dimensions on
    both sides are a batch.
    """

    def formula(arguments: Arguments) -> OperatorWork | None:
        a, b = arguments.shape(0), arguments.shape(1)
        if a is None or b is None or not {len(a), len(b)} <= {2, 3} or a[-1] != b[-2]:
            return None
        groups = (arguments.shape(offsets) or (1,))[0]
        if len(a) == len(b) == 3:
            sizes = _Sizes(a[1], b[2], a[2], a[0], num_outputs=a[0])
        else:
            num_outputs = groups if len(a) == len(b) else 1
            sizes = _Sizes(a[-2], b[-1], a[-1], num_outputs=num_outputs)
        return _work(arguments, sizes, (0, 1))

    return formula


def foreign_product(arguments: Arguments) -> OperatorWork | None:
    """Of operators whose arguments have no one order: the first matrices that fit.

    An output may stand before the operands. Weights are (N, K) or (K, N), which is the
    same number where a matrix is square; packed ones fit nothing, and give None.
    """
    places = [
        place
        for place, shape in enumerate(arguments.shapes)
        if shape and len(shape) == 2 and arguments.element(place) is not None
    ][:3]
    shapes: list[Shape] = [arguments.shapes[place] or () for place in places]
    if len(shapes) == 3:
        out, source, weight = shapes
        if out[0] == source[0] and {out[1], source[1]} == set(weight):
            return _work(
                arguments, _Sizes(out[0], out[1], source[1]), (places[1], places[2])
            )
    if len(shapes) < 2:
        return None
    source, weight = shapes[:2]
    if source[1] not in weight:
        return None
    n = weight[0] if source[1] == weight[1] else weight[1]
    bias = places[1] + 1
    is_bias = arguments.shape(bias) == (n,)
    sizes = _Sizes(source[0], n, source[1])
    return _work(arguments, sizes, (places[0], places[1]), bias if is_bias else None)


def _weight_first(arguments: Arguments) -> OperatorWork | None:
    """Weight (N, K), input (M, K): ROCm kernels of vLLM for few rows."""
    weight, source = arguments.shape(0), arguments.shape(1)
    if not weight or not source or len(weight) != 2 or source[-1] != weight[1]:
        return None
    sizes = _Sizes(math.prod(source[:-1]), weight[0], weight[1])
    return _work(arguments, sizes, (1, 0))


FORMULAS: Final[dict[str, Formula]] = {
    "aten::mm": _product(0),
    "aten::mv": _product(0),
    "aten::bmm": _product(0),
    "aten::matmul": _product(0),
    "aten::_int_mm": _product(0),
    "aten::_scaled_mm": _product(0, bias=4),
    "aten::addmm": _product(1, bias=0),
    "aten::addmv": _product(1, bias=0),
    "aten::baddbmm": _product(1, bias=0),
    "aten::_addmm_activation": _product(1, bias=0),
    "aten::linear": _linear,
    "aten::_grouped_mm": _grouped(2),
    "aten::_scaled_grouped_mm": _grouped(4),
    "_rocm_C::wvSplitK": _weight_first,
    "_rocm_C::LLMM1": _weight_first,
}
FOREIGN: Final = re.compile(
    r"(?:vllm|_C|sgl_kernel|aiter|trtllm|flashinfer|transformer_engine|tex_ts|_?deep_?gemm)"
    r"::\w*(?:gemm|scaled_mm|linear)\w*"
)
"""Multiplications of libraries for inference and training, by `foreign_product`."""
