"""The simulated training: a sharded transformer, told allocation by allocation.

One program gives everything that is said of a rank's memory: the step table's columns, the
memory of modules and the allocator's history are all what it does to a `Device`.

Parameters, both moments of Adam and gradients are shards in fp32. The parameters of a layer
are gathered in bf16 for its forward and its backward and dropped behind them. Forward keeps
the activations that backward needs, which frees them layer by layer and reduces gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.simulate.device import Device

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from memboard.collector.format.oom import Frame
    from memboard.collector.simulate.device import Block

BF16_BYTES: Final = 2
FP32_BYTES: Final = 4
VOCABULARY: Final = 32_000
ROOT: Final = "Transformer"
PHASES: Final = ("dataloader", "forward", "backward", "optimizer", "zero_grad")
"""Of a step, one after the other: parts whose time a recorder measures."""


@dataclass(slots=True, eq=False)
class Module:
    """A module of the model, and what each token of a batch costs it."""

    path: str
    type: str
    elements: int = 0
    keeps: tuple[int, ...] = ()
    """Bytes of the activations that its forward keeps, behind those of its children."""
    scratch_bytes: int = 0
    """What its kernels need for a moment, in forward and in backward."""
    units: int = 0
    children: list[Module] = field(default_factory=list)
    parent: int = -1
    row: int = 0
    """Of the table of modules."""

    @property
    def is_unit(self) -> bool:
        """Whether it gathers the parameters of those below that no other unit gathers."""
        return self.type in (ROOT, "TransformerBlock")

    @property
    def site(self) -> str:
        """Where its forward allocates: layers share their lines."""
        in_layer = self.path.partition("layers.")[2].partition(".")[2]
        return in_layer or self.path or "loss"

    def gathered(self) -> Iterator[Module]:
        """The modules whose parameters it gathers."""
        if self.elements:
            yield self
        for child in self.children:
            if not child.is_unit:
                yield from child.gathered()


def _model(num_layers: int, hidden: int, feed_forward: int) -> Module:
    h, f = hidden, feed_forward
    row, wide, heads = h * BF16_BYTES, f * BF16_BYTES, h // 128 * FP32_BYTES
    logits, embedding_bytes = VOCABULARY * BF16_BYTES, VOCABULARY * h
    norm = (h, (row, FP32_BYTES), 0, 8)  # its output and the reciprocal deviation
    layers = Module("layers", "ModuleList")
    for number in range(num_layers):
        block = Module(f"layers.{number}", "TransformerBlock")

        def part(name: str, *values: Any, into: Module = block) -> Module:
            into.children.append(Module(f"{block.path}.{name}", *values))  # noqa: B023
            return into.children[-1]

        part("attention_norm", "RMSNorm", *norm)
        attention = part("attention", "Attention", 0, (row, heads), row, 90)
        for projection, size in (("qkv", 3), ("out", 1)):
            values = ("Linear", size * h * h, (size * row,), 0, 20 * size)
            part(f"attention.{projection}", *values, into=attention)
        part("feed_forward_norm", "RMSNorm", *norm)
        product = part("feed_forward", "FeedForward", 0, (wide,), wide, 10)
        for projection, size in (("gate", wide), ("up", wide), ("down", row)):
            values = ("Linear", h * f, (size,), wide, 55)
            part(f"feed_forward.{projection}", *values, into=product)
        layers.children.append(block)
    loss = 2 * logits  # in fp32
    children = [
        Module("embedding", "Embedding", embedding_bytes, (row,), 0, 20),
        layers,
        Module("norm", "RMSNorm", *norm),
        Module("head", "Linear", embedding_bytes, (logits,), logits, 120),
    ]
    return Module("", ROOT, 0, (loss,), 0, 40, children)


_LINES: Final = """
parameter: build_model@model.py:291
moments: _init_group@adamw.py:158 step@adamw.py:231 wrapper@optimizer.py:526 step:131
update: _multi_tensor_adam@adam.py:684 step@adamw.py:243 wrapper@optimizer.py:526 step:131
rotary cache: build_rotary@model.py:44
feature cache: extend@feature_cache.py:88 prefill@feature_cache.py:121 step:118
kept outputs: append@evaluate.py:52 log_outputs@train.py:152 step:118
batch: to_device@data.py:74 step:116
loss: loss_of@train.py:96 step:121
embedding: forward:255 step:118
attention_norm: forward:61 forward:214 forward:262 step:118
attention.qkv: forward:128 forward:214 forward:262 step:118
attention: forward:141 forward:214 forward:262 step:118
attention.out: forward:149 forward:214 forward:262 step:118
feed_forward_norm: forward:61 forward:215 forward:262 step:118
feed_forward.gate: forward:177 forward:215 forward:262 step:118
feed_forward.up: forward:178 forward:215 forward:262 step:118
feed_forward: forward:179 forward:215 forward:262 step:118
feed_forward.down: forward:180 forward:215 forward:262 step:118
norm: forward:266 step:118
head: forward:268 step:118
gather: foreach_all_gather@_fsdp_collectives.py:181 unshard@_fsdp_param_group.py:312
backward gather: unshard@_fsdp_param_group.py:312 pre_backward@_fsdp_param_group.py:441
reduce: foreach_reduce@_fsdp_collectives.py:452 post_backward@_fsdp_param_group.py:508
"""
"""Stacks of the program's allocations, by site: the innermost frame first. A backward is
missing: it runs in a thread of the autograd engine, where no Python is."""

_TORCH: Final = "/opt/venv/lib/python3.11/site-packages/torch/"
_FOLDERS: Final = {
    **dict.fromkeys(("adam.py", "adamw.py", "optimizer.py"), _TORCH + "optim/"),
    **dict.fromkeys(
        ("_fsdp_collectives.py", "_fsdp_param_group.py"),
        _TORCH + "distributed/fsdp/_fully_shard/",
    ),
}
"""Of files that are not the user's."""


_SHORT: Final = {"forward": "forward@model.py", "step": "train_step@train.py"}


def _frames(frames_text: str) -> Iterator[Frame]:
    calls = _TORCH + "nn/modules/module.py"
    for word in frames_text.split():
        place, _, line = word.partition(":")
        function, _, file = _SHORT.get(place, place).partition("@")
        yield (function, _FOLDERS.get(file, "/workspace/llm/") + file, int(line))
        if function == "forward":
            yield ("_call_impl", calls, 1790)
            yield ("_wrapped_call_impl", calls, 1779)
    yield ("main", "/workspace/llm/train.py", 171)
    yield ("<module>", "/workspace/llm/train.py", 190)


SITES: Final[Mapping[str, tuple[Frame, ...]]] = {
    "backward": (),
    **{
        site: tuple(_frames(frames_text))
        for site, frames_text in (
            line.split(": ", 1) for line in _LINES.strip().splitlines()
        )
    },
}
"""By site: the stack that an allocation is made under."""


class Training:
    """What a job of so many ranks trains: sharded over at most 64 of them.

    `modules` are in the order of named_modules(). `boundaries` are those of the last step:
    time, entries of the device's log before it, row of the module (-1: none), and state.
    """

    def __init__(
        self, num_ranks: int, sizes: tuple[int, int, int] | None = None
    ) -> None:
        """`sizes`: layers, hidden and feed-forward; None: of a model that fits."""
        self.num_shards = min(num_ranks, 64)
        fitting = [
            (32, (40, 5120, 13824)),
            (8, (32, 4096, 11008)),
            (1, (24, 2048, 5504)),
        ]
        fitting_sizes = next(
            sizes for least, sizes in fitting if self.num_shards >= least
        )
        self._root = _model(
            *(sizes or fitting_sizes)
        )  # 13, 7 or 1.3 billion parameters
        self.modules: list[Module] = []
        self._number(self._root, -1)
        self.boundaries: list[tuple[float, int, int, str]] = []
        self._row_bytes = self._root.children[0].keeps[0]
        self._units: dict[str, float] = {}
        measured = Device(1 << 62)
        self.begin(measured)
        self.step(measured, 128)

    @property
    def num_parameters(self) -> int:
        """Elements of the whole model; input and output embeddings are not tied."""
        return sum(module.elements for module in self.modules)

    @property
    def bytes_per_token(self) -> int:
        """What forward keeps of a batch."""
        return sum(sum(module.keeps) for module in self.modules)

    def shard_bytes(self, elements: int) -> int:
        """This rank's fp32 part of a tensor."""
        return -(-elements // self.num_shards) * FP32_BYTES

    def begin(self, device: Device) -> None:
        """The model and its optimizer, resumed from a checkpoint."""
        for module in self.modules:
            if module.elements:
                size = self.shard_bytes(module.elements)
                parameter, row = f"{module.path}.weight", module.row
                device.alloc(size, "parameter", "sharded_param", row, parameter)
                for moment in ("exp_avg", "exp_avg_sq"):
                    state = f"{parameter}.{moment}"
                    device.alloc(size, "moments", "optimizer", row, state)

    def step(
        self,
        device: Device,
        tokens: int,
        clock: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        """One step over a batch of `tokens`; `clock`: start and length of its phases in us.

        Raises:
            OutOfMemory: the device is full; the step is not gone on with.
        """
        self._device, self._tokens = device, tokens
        self._kept: dict[int, list[Block]] = {}
        self._gathered: dict[int, list[Block]] = {}
        self._unsharded: list[Block] = []
        self._grads: list[Block] = []
        self.boundaries = []
        began = device.now_us
        for phase in PHASES:
            if clock is not None:
                start, length = clock[phase]
                device.now_us = max(device.now_us, start)
                device.speed = length / self._units[phase]
            if phase == "dataloader":
                batch = [device.alloc(tokens * 8, "batch", "input") for _ in range(2)]
            elif phase == "forward":
                self._forward(self._root)
            elif phase == "backward":
                size = tokens * self._row_bytes
                self._upstream = device.alloc(size, "backward", "temp", 0)
                self._backward(self._root)
                device.free(self._upstream)
            elif phase == "optimizer":
                self._mark(-1, "before_optimizer")
                for _ in range(4):  # the fused update walks the shards in groups
                    self._passing(self._grads[0].requested_bytes, "update", -1)
                self._mark(-1, "after_optimizer")
            else:
                device.free(*self._grads, *batch)
            if clock is None:
                self._units[phase] = device.now_us - began
                began = device.now_us

    def _forward(self, module: Module) -> None:
        if module.type == "ModuleList":  # it never runs
            for child in module.children:
                self._forward(child)
            return
        row, device = module.row, self._device
        self._mark(row, "before_pre_forward")
        if module.is_unit:
            self._gather(module, "gather")
            self._mark(row, "after_pre_forward")
        for child in module.children:
            self._forward(child)
        if module.scratch_bytes and module.children:
            self._passing(module.scratch_bytes * self._tokens, module.site, row)
        self._kept[row] = [
            device.alloc(size * self._tokens, module.site, "activation", row)
            for size in module.keeps
        ]
        device.work(module.units)
        if module.is_unit:
            self._mark(row, "before_post_forward")
            if row:  # the root keeps its parameters: its backward comes at once
                device.free(*self._gathered.pop(row))
        self._mark(row, "after_post_forward")

    def _backward(self, module: Module) -> None:
        if module.type == "ModuleList":
            for child in reversed(module.children):
                self._backward(child)
            return
        row, device, before = module.row, self._device, self._upstream
        self._mark(row, "before_pre_backward")
        outer, temps = self._unsharded, []
        if module.is_unit:
            self._unsharded = []
            if row:
                self._gather(module, "backward gather")
                size = self._tokens * self._row_bytes
                self._upstream = device.alloc(size, "backward", "temp", row)
            self._mark(row, "after_pre_backward")
        if module.scratch_bytes:
            size = module.scratch_bytes * self._tokens
            temps.append(device.alloc(size, "backward", "temp", row))
        if module.elements:
            size = module.elements * BF16_BYTES
            self._unsharded.append(
                device.alloc(size, "backward", "unsharded_grad", row)
            )
        device.work(2 * module.units)
        device.free(*self._kept.pop(row), *temps)
        for child in reversed(module.children):
            self._backward(child)
        if module.is_unit:
            self._mark(row, "before_post_backward")
            self._reduce(module)
            device.free(*self._gathered.pop(row))
            self._unsharded = outer
        self._mark(row, "after_post_backward")
        if module.is_unit and row:
            device.free(before)

    def _gather(self, unit: Module, site: str) -> None:
        """All-gather the parameters of a unit."""
        sizes = [
            (module.row, module.elements * BF16_BYTES) for module in unit.gathered()
        ]
        self._gathered[unit.row] = [
            self._device.alloc(size, site, "unsharded_param", row)
            for row, size in sizes
        ]
        total = sum(size for _, size in sizes)
        self._passing(total, site, unit.row, "all_gather")

    def _reduce(self, unit: Module) -> None:
        """Reduce-scatter the gradients of a unit into an fp32 shard."""
        device, row = self._device, unit.row
        total = sum(module.elements for module in unit.gathered())
        packed = device.alloc(total * BF16_BYTES, "reduce", "reduce_scatter", row)
        device.free(*self._unsharded)
        device.work(20)
        size, gradient = self.shard_bytes(total), f"{unit.path or ROOT}.grad"
        self._grads.append(device.alloc(size, "reduce", "sharded_grad", row, gradient))
        device.free(packed)

    def _passing(self, size: int, site: str, row: int, category: str = "temp") -> None:
        """What one kernel needs and drops."""
        block = self._device.alloc(size, site, category, row)
        self._device.work(15)
        self._device.free(block)

    def _mark(self, row: int, state: str) -> None:
        log = self._device.log
        if log is not None:
            self.boundaries.append((self._device.now_us, len(log), row, state))

    def _number(self, module: Module, parent: int) -> None:
        module.row, module.parent = len(self.modules), parent
        self.modules.append(module)
        for child in module.children:
            self._number(child, module.row)
