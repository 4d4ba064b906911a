"""Convolutions: 2 x batch x positions of the output x elements of the weight FLOP.

Positions are those of the input where a convolution is transposed. Backward takes as much
for each gradient that it computes, as `torch.utils.flop_counter` counts it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from memboard.tb_plugin.analysis.efficiency.arguments import OperatorWork

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.efficiency.arguments import (
        Arguments,
        Formula,
        Shape,
    )


def _work(
    arguments: Arguments,
    operands: tuple[int, int],
    out: Shape,
    *,
    is_transposed: bool,
    num_gradients: int = 0,
) -> OperatorWork | None:
    """Of a convolution of an input and a weight, at their places; 0 gradients: forward."""
    source = arguments.shape(operands[0]) or ()
    weight = arguments.shape(operands[1]) or ()
    element = arguments.element(operands[0])
    if element is None:
        return None
    space = source[2:] if is_transposed else out[2:]
    num_times = max(num_gradients, 1)
    # Each gradient is as large as the input or the weight, which the other one needs.
    moved = num_times * sum(arguments.num_bytes(place) for place in operands)
    return OperatorWork(
        kind="convolution",
        flop=2 * num_times * source[0] * math.prod(space) * math.prod(weight),
        moved_bytes=moved + math.prod(out) * element.num_bytes,
        element=element.name,
        sizes=f"{_sizes(source)} * {_sizes(weight)}",
    )


def _sizes(shape: Shape) -> str:
    return "x".join(map(str, shape))


@dataclass(frozen=True, slots=True)
class _Convolution:
    """Places of the arguments of one operator, after input and weight."""

    stride: int
    padding: int
    dilation: int
    groups: int
    transposed: int | None = None
    output_padding: int | None = None

    def __call__(self, arguments: Arguments) -> OperatorWork | None:
        source, weight = arguments.shape(0), arguments.shape(1)
        if not source or not weight or len(source) != len(weight) or len(weight) < 3:
            return None
        is_transposed: Any = False
        if self.transposed is not None:
            is_transposed = arguments.value(self.transposed)
        groups = arguments.value(self.groups)
        if not isinstance(is_transposed, bool) or not isinstance(groups, int):
            return None
        numbers = [
            arguments.value(place)
            for place in (self.stride, self.padding, self.dilation)
        ]
        added = None
        if is_transposed and self.output_padding is not None:
            added = arguments.value(self.output_padding)
        space = [
            _positions(
                size,
                kernel,
                [_along(number, axis) for number in numbers],
                _along(added, axis) if is_transposed else None,
            )
            for axis, (size, kernel) in enumerate(
                zip(source[2:], weight[2:], strict=True)
            )
        ]
        if not all(space):
            return None
        channels = weight[1] * groups if is_transposed else weight[0]
        out = source[0], channels, *space
        return _work(arguments, (0, 1), out, is_transposed=is_transposed)


def _positions(
    size: int, kernel: int, numbers: list[int | None], added: int | None
) -> int:
    """Of the output along one axis, as of torch.nn.Conv2d; 0: not known.

    `numbers`: stride, padding and dilation. `added`: `output_padding` of
    torch.nn.ConvTranspose2d; None: not transposed.
    """
    stride, padding, dilation = numbers
    if not stride or stride < 0 or padding is None or dilation is None:
        return 0
    reach = dilation * (kernel - 1) + 1
    if added is None:
        return max((size + 2 * padding - reach) // stride + 1, 0)
    return max((size - 1) * stride - 2 * padding + reach + added, 0)


def _along(numbers: Any, axis: int) -> int | None:
    """Of a list with a number for each axis, or one for all."""
    if not isinstance(numbers, list) or not numbers:
        return None
    number = numbers[axis] if axis < len(numbers) else numbers[0]
    return number if isinstance(number, int) else None


def _backward(arguments: Arguments) -> OperatorWork | None:
    """Gradient of the output, input, weight; last, which gradients are wanted."""
    gradient, source, weight = (arguments.shape(place) for place in range(3))
    is_transposed, wanted = arguments.value(7), arguments.value(10)
    if not gradient or not source or not weight or not isinstance(wanted, list):
        return None
    num_gradients = sum(is_wanted is True for is_wanted in wanted[:2])
    if not isinstance(is_transposed, bool) or not num_gradients:
        return None
    if not len(gradient) == len(source) == len(weight):
        return None
    return _work(
        arguments,
        (1, 2),
        gradient,
        is_transposed=is_transposed,
        num_gradients=num_gradients,
    )


_GENERAL: Final = _Convolution(
    stride=3, padding=4, dilation=5, transposed=6, output_padding=7, groups=8
)
_OF_LIBRARY: Final = _Convolution(padding=2, stride=3, dilation=4, groups=5)
_WITH_BIAS: Final = _Convolution(padding=3, stride=4, dilation=5, groups=6)
_PLAIN: Final = _Convolution(stride=3, padding=4, dilation=5, groups=6)
FORMULAS: Final[dict[str, Formula]] = {
    "aten::conv1d": _PLAIN,
    "aten::conv2d": _PLAIN,
    "aten::conv3d": _PLAIN,
    "aten::convolution": _GENERAL,
    "aten::_convolution": _GENERAL,
    "aten::convolution_overrideable": _GENERAL,
    "aten::cudnn_convolution": _OF_LIBRARY,
    "aten::miopen_convolution": _WITH_BIAS,
    "aten::convolution_backward": _backward,
    "aten::convolution_backward_overrideable": _backward,
}
