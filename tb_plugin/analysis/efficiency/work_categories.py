"""What kind of work each kernel and copy is: matrix multiplication, attention, norm ...

The operator that launched it decides, by its name: a helper kernel of a matrix multiplication
is part of it. Where that says nothing (a library's own operator, a replayed graph), the
kernel's name does. Copies and communication are what ran, whoever launched it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.kernel_names.kinds import kernel_kind
from memboard.tb_plugin.analysis.trace.categories import work_kind
from memboard.tb_plugin.analysis.trace.texts import are, looked_up

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.trace.trace import Trace

CATEGORIES: Final = (
    "other",
    "matmul",
    "attention",
    "convolution",
    "norm",
    "elementwise",
    "reduction",
    "indexing",
    "pooling",
    "optimizer",
    "fused",
    "communication",
    "copy",
)
"""By the number that columns have; the first one: not known."""
OTHER: Final = 0

Patterns: TypeAlias = tuple[tuple[int, re.Pattern[str]], ...]


def _patterns(**by_category: str) -> Patterns:
    """In the order in which they are tried."""
    return tuple(
        (CATEGORIES.index(category), re.compile(pattern, re.IGNORECASE))
        for category, pattern in by_category.items()
    )


_FUSED: Final = r"triton_(?:poi|red|per|for|split_scan)_"
"""What torch.compile's Inductor makes of several operators."""
_NORM: Final = r"(?:layer|batch|group|instance|rms)_?norm"

_ATEN_NAMES: Final = {
    "matmul": """addmm baddbmm addbmm mm bmm mv addmv addr dot matmul linear einsum bilinear
        chain_matmul addmm_activation int_mm scaled_mm grouped_mm scaled_grouped_mm
        weight_int4pack_mm weight_int8pack_mm""",
    "reduction": """sum mean max min amax amin aminmax argmax argmin std var prod any all norm
        linalg_vector_norm cumsum cumprod logsumexp softmax log_softmax softmax_backward_data
        log_softmax_backward_data nll_loss nll_loss_forward nll_loss2d_forward
        nll_loss2d mse_loss cross_entropy_loss count_nonzero""",
    "copy": """copy to_copy to clone contiguous cat stack chunk_cat pin_memory item
        local_scalar_dense""",
    "elementwise": """add sub rsub mul div pow exp expm1 log log1p sqrt rsqrt neg abs sign sigmoid
        tanh relu relu6 gelu silu mish elu selu leaky_relu hardtanh hardswish hardsigmoid
        softplus threshold clamp clamp_min clamp_max where masked_fill dropout native_dropout
        bernoulli fill zero eq ne lt gt le ge cos sin reciprocal lerp addcmul addcdiv floor ceil
        round remainder fmod floor_divide true_divide maximum minimum isnan isinf isfinite
        arange tril triu normal uniform erf logical_and logical_or logical_not bitwise_and
        bitwise_or bitwise_not glu square polar""",
    "indexing": """gather take nonzero masked_select topk sort argsort unique unique2 searchsorted
        bucketize roll flip one_hot""",
}
"""Without `aten::`, `_` around them and `_backward`."""
_OF_ATEN: Final = {
    name: category for category, names in _ATEN_NAMES.items() for name in names.split()
}
_ATEN: Final = re.compile(r"aten::_?(\w+?)(?:_backward)?_?")

_OF_OPERATORS: Final = _patterns(
    fused=rf"^{_FUSED}",
    optimizer=r"^aten::_(?:foreach|fused|amp)_",
    attention=r"attention|attn|fmha|\bmha_|reshape_and_cache",
    convolution=r"^aten::\w*conv(?:olution|\dd|_t|_d)|ConvolutionBackward",
    norm=rf"{_NORM}",
    matmul=r"(?:Addm[mv]|Mm|Bmm|Baddbmm|Linear)Backward|^triton_tem_\w*mm|::\w*gemm"
    r"|::\w*(?:scaled_mm|grouped_mm|matmul)|::wvSplitK|::LLMM1",
    pooling=r"^aten::\w*(?:max_pool|avg_pool|adaptive_\w+_pool|upsample)",
    indexing=r"^aten::_?(?:index|embedding|scatter)",
    elementwise=r"::(?:silu|gelu)_and_mul|rotary_embedding|_quant$",
)
"""For names that are not among these; the first that fits."""

_OF_FEW_KERNELS: Final = _patterns(
    fused=rf"^{_FUSED}", optimizer=r"multi_tensor_apply|(?<![a-z])(?:adam|lamb)"
)
"""Finer than what `kernel_names` says of them."""
_OF_OTHER_KERNELS: Final = _patterns(
    indexing=r"index(?!ed_elementwise)|gather|scatter|embedding|topk|sort|radix",
    pooling=r"max_pool|avg_pool|pooling|upsample",
)
"""For those of which that says nothing."""


def work_categories(trace: Trace, owner: Ints, communicates: Flags) -> Ints:
    """(device work,) uint8: the category of each, as a number of `CATEGORIES`.

    `owner`: (device work,) the operator that launched each, or NOTHING. `communicates`:
    (device work,) whether its role is communication.
    """
    slices, work = trace.slices, trace.device_work
    categories = np.zeros(len(work), np.uint8)
    has_owner = owner != NOTHING
    names = slices.name[owner[has_owner]]
    categories[has_owner] = looked_up(trace.strings, names, operator_category)
    unknown = np.flatnonzero(categories == OTHER)
    names = slices.name[work.row[unknown]]
    categories[unknown] = looked_up(trace.strings, names, kernel_category)
    is_copy = are(
        trace.strings,
        slices.category[work.row],
        lambda text: work_kind(text) in ("copy", "fill"),
    )
    categories[is_copy] = CATEGORIES.index("copy")
    categories[communicates] = CATEGORIES.index("communication")
    return categories


def operator_category(operator: str) -> int:
    """The number of an operator's category by its name."""
    match = _ATEN.fullmatch(operator)
    if match is not None and match[1] in _OF_ATEN:
        return CATEGORIES.index(_OF_ATEN[match[1]])
    return _first(_OF_OPERATORS, operator)


def kernel_category(kernel: str) -> int:
    """The number of a kernel's category by its name."""
    category = _first(_OF_FEW_KERNELS, kernel)
    if category != OTHER:
        return category
    kind = kernel_kind(kernel).category
    if kind != "other":
        return CATEGORIES.index(kind)
    return _first(_OF_OTHER_KERNELS, kernel)


def _first(patterns: Patterns, name: str) -> int:
    fits = (category for category, pattern in patterns if pattern.search(name))
    return next(fits, OTHER)
