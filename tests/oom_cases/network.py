"""Models as lists of tensors: their weights, and what forward allocates at which line."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.oom_cases.stacks import Frame, Frames, Script


@dataclasses.dataclass(frozen=True)
class Op:
    """One operation of a layer: where it stands and what it allocates.

    `width` counts values per token in units of the model's width; one that is not `kept`
    is freed at the end of its layer.
    """

    line: int
    width: float
    leaf: tuple[Frame, ...] = ()
    kept: bool = True


LINEAR: tuple[Frame, ...] = (("torch/nn/modules/linear.py", 125, "forward"),)
GELU: tuple[Frame, ...] = (("torch/nn/modules/activation.py", 734, "forward"),)
NORM: tuple[Frame, ...] = (
    ("torch/nn/functional.py", 2910, "layer_norm"),
    ("torch/nn/modules/normalization.py", 217, "forward"),
)
SOFTMAX: tuple[Frame, ...] = (("torch/nn/functional.py", 2140, "softmax"),)
CROSS_ENTROPY: tuple[Frame, ...] = (("torch/nn/functional.py", 3494, "cross_entropy"),)


@dataclasses.dataclass(frozen=True)
class Flavour:
    """A family of models: its file and the lines of its parts."""

    name: str
    file: str
    installed: bool
    attention: tuple[Op, ...]
    mlp: tuple[Op, ...]
    attention_line: int
    mlp_line: int
    block_line: int
    model_line: int
    head_line: int
    float_line: int


FLAVOURS = (
    Flavour(
        "llama",
        "transformers/models/llama/modeling_llama.py",
        True,
        (
            Op(68, 2),
            Op(256, 1, LINEAR),
            Op(257, 1, LINEAR),
            Op(258, 1, LINEAR),
            Op(141, 1),
            Op(142, 1, kept=False),
            Op(281, 1, LINEAR),
        ),
        (Op(177, 2.7, LINEAR), Op(178, 2.7, LINEAR), Op(179, 2.7), Op(180, 1, LINEAR)),
        309,
        321,
        412,
        477,
        488,
        489,
    ),
    Flavour(
        "gpt",
        "model.py",
        False,
        (
            Op(27, 1, NORM),
            Op(56, 3, LINEAR),
            Op(64, 1),
            Op(71, 1),
            Op(76, 1, LINEAR, kept=False),
        ),
        (Op(88, 4, LINEAR), Op(89, 4, GELU), Op(90, 1, LINEAR)),
        104,
        105,
        180,
        182,
        187,
        188,
    ),
    Flavour(
        "vit",
        "timm/models/vision_transformer.py",
        True,
        (
            Op(90, 3, LINEAR),
            Op(98, 1),
            Op(104, 1, LINEAR),
            Op(171, 1, NORM),
        ),
        (Op(44, 4, LINEAR), Op(45, 4, GELU), Op(48, 1, LINEAR, kept=False)),
        165,
        166,
        829,
        861,
        875,
        876,
    ),
)


@dataclasses.dataclass(frozen=True)
class Network:
    """A model of one flavour with its sizes."""

    flavour: Flavour
    width: int
    layers: int
    vocabulary: int
    bytes_per_weight: int = 2

    def weights(self) -> list[int]:
        """Bytes of each parameter."""
        each = self.bytes_per_weight * self.width
        layer = [each * self.width] * 4 + [each * 4 * self.width] * 2 + [each, each]
        table = each * self.vocabulary
        return [table, *(layer * self.layers), table]

    def per_token(self) -> int:
        """Bytes that forward keeps for each token in all layers."""
        ops = (*self.flavour.attention, *self.flavour.mlp)
        kept = sum(op.width for op in ops if op.kept)
        return int(kept * self.width * 2 * self.layers)

    def file(self, script: Script) -> str:
        """The model's source file."""
        root = script.style.packages if self.flavour.installed else script.style.root
        return root + self.flavour.file

    def op_stack(self, script: Script, op: Op, site: str, *, mlp: bool) -> Frames:
        """Where one operation of a layer allocates."""
        file, made = self.file(script), self.flavour
        part_line = made.mlp_line if mlp else made.attention_line
        forwards: list[tuple[Frame, ...]] = []
        if op.leaf:
            forwards.append(script.lib(*op.leaf))
        forwards += [
            ((file, op.line, "forward"),),
            ((file, part_line, "forward"),),
            ((file, made.block_line, "forward"),),
            ((file, made.model_line, "forward"),),
        ]
        return script.stack(script.modules(*forwards), script.user(site))

    def head_stack(self, script: Script, site: str) -> Frames:
        """Where the last layer makes the logits."""
        head = (self.file(script), self.flavour.head_line, "forward")
        return script.stack(
            script.modules(script.lib(*LINEAR), (head,)), script.user(site)
        )

    def float_stack(self, script: Script, site: str) -> Frames:
        """Where logits become float32."""
        upcast = (self.file(script), self.flavour.float_line, "forward")
        return script.stack(script.modules((upcast,)), script.user(site))
