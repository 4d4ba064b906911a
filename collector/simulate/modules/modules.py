"""The memory of a fully sharded transformer's modules through one step, as an event log.

The same training as in `transformer`, told module by module: what each gathers, keeps
for its backward, frees and reduces, at which of its boundaries. Nothing here trains; the
log has the shape and the sums of one that a tracker would have left.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

import numpy as np

from collector.format.memory import CATEGORIES, STATES
from collector.simulate.modules.transformer import BF16_BYTES, FP32_BYTES, INT64_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.format.records import CaptureTable
    from collector.simulate.modules.transformer import TransformerShape

ROUNDING_BYTES: Final = 512
"""Of a block's size, as torch's allocator has it."""

ROOT: Final = "Transformer"

_CATEGORY: Final = {name: index for index, name in enumerate(CATEGORIES)}
_STATE: Final = {name: index for index, name in enumerate(STATES)}
_EVENT: Final = ("time_us", "delta_bytes", "category", "device", "module", "storage")
_BOUNDARY: Final = ("time_us", "event", "module", "state", "in_backward", "call")

_BLOCK: Final = (
    ("", "TransformerBlock"),
    ("attention_norm", "RMSNorm"),
    ("attention", "Attention"),
    ("attention.qkv", "Linear"),
    ("attention.out", "Linear"),
    ("feed_forward_norm", "RMSNorm"),
    ("feed_forward", "FeedForward"),
    ("feed_forward.gate", "Linear"),
    ("feed_forward.up", "Linear"),
    ("feed_forward.down", "Linear"),
)
"""Modules of one layer, in the order of named_modules()."""

BLOCK, ATTENTION_NORM, ATTENTION, QKV, OUT, FFN_NORM, FFN, GATE, UP, DOWN = range(10)
"""Their places."""


class StepLog:
    """Events and boundaries of one step, row by row."""

    def __init__(self) -> None:
        self._events = array("q")
        self._boundaries = array("q")
        self._blocks: list[tuple[int, int, int]] = []
        """By storage: bytes, category, owner."""
        self._now_us = 0

    def alloc(self, num_bytes: int, category: str, owner: int) -> int:
        """A new block; returns its storage."""
        size = -(-num_bytes // ROUNDING_BYTES) * ROUNDING_BYTES
        self._blocks.append((size, _CATEGORY[category], owner))
        storage = len(self._blocks) - 1
        self._event(size, storage)
        return storage

    def free(self, *storages: int) -> None:
        """Give blocks back."""
        for storage in storages:
            self._event(-self._blocks[storage][0], storage)

    def become(self, storage: int, category: str) -> None:
        """The same block, under another category from now on."""
        size, _, owner = self._blocks[storage]
        self._event(-size, storage)
        self._blocks[storage] = (size, _CATEGORY[category], owner)
        self._event(size, storage)

    def mark(self, module: int, state: str) -> None:
        """A boundary."""
        num_events = len(self._events) // len(_EVENT)
        backward = "backward" in state
        self._boundaries.extend(
            (self._now_us, num_events, module, _STATE[state], backward, 0)
        )

    def work(self, us: int) -> None:
        """Time passes."""
        self._now_us += us

    def tables(
        self, *, unattributed_bytes: int, duration_us: int
    ) -> dict[str, CaptureTable]:
        """The tables `events` and `boundaries`, times stretched to a duration.

        `unattributed_bytes` are there from the start and belong to no module.
        """
        events = np.array(self._events, np.int64).reshape(-1, len(_EVENT)).T
        bounds = np.array(self._boundaries, np.int64).reshape(-1, len(_BOUNDARY)).T
        if unattributed_bytes:
            first = (
                0,
                unattributed_bytes,
                _CATEGORY["other"],
                0,
                -1,
                len(self._blocks),
            )
            events = np.concatenate(
                [np.array(first, np.int64)[:, None], events], axis=1
            )
            bounds[1] += 1
        stretch = duration_us / max(self._now_us, 1)
        for table in (events, bounds):
            table[0] = (table[0] * stretch).astype(np.int64)
        return {
            "events": dict(zip(_EVENT, events, strict=True)),
            "boundaries": dict(zip(_BOUNDARY, bounds, strict=True)),
        }

    def peak_bytes(self) -> int:
        """The highest total so far."""
        deltas = np.array(self._events, np.int64)[1 :: len(_EVENT)]
        return int(np.cumsum(deltas).max(initial=0))

    def _event(self, delta: int, storage: int) -> None:
        _, category, owner = self._blocks[storage]
        self._events.extend((self._now_us, delta, category, 0, owner, storage))


class ShardedStep:
    """Drives a log as one step of a rank does: forward, backward, optimizer."""

    def __init__(self, shape: TransformerShape) -> None:
        self._shape = shape
        h, f = shape.hidden, shape.feed_forward
        # (module, elements) of each parameter of a layer.
        self._layer_params = (
            (ATTENTION_NORM, h),
            (QKV, h * 3 * h),
            (OUT, h * h),
            (FFN_NORM, h),
            (GATE, h * f),
            (UP, h * f),
            (DOWN, f * h),
        )
        first = 3  # behind the root, the embedding and the list of layers
        self._layers = [first + i * len(_BLOCK) for i in range(shape.num_layers)]
        self._norm = first + shape.num_layers * len(_BLOCK)
        self._head = self._norm + 1
        self._embedding = 1
        embedding = shape.vocabulary * h
        self._root_params = (
            (self._embedding, embedding),
            (self._norm, h),
            (self._head, embedding),
        )

    def modules(self) -> dict[str, CaptureTable]:
        """The table `modules`, by its name."""
        rows: list[tuple[str, str, int, bool]] = [("", ROOT, -1, True)]
        rows.append(("embedding", "Embedding", 0, False))
        rows.append(("layers", "ModuleList", 0, False))
        for index, base in enumerate(self._layers):
            for name, kind in _BLOCK:
                path = f"layers.{index}" + (f".{name}" if name else "")
                above = name.rpartition(".")[0]
                parent = base + [n for n, _ in _BLOCK].index(above) if name else 2
                rows.append((path, kind, parent, not name))
        rows += [("norm", "RMSNorm", 0, False), ("head", "Linear", 0, False)]
        params = np.zeros(len(rows), np.int64)
        for module, elements in self._all_params():
            params[module] += self._shard_bytes(elements)
        return {
            "modules": {
                "fqn": tuple(f"{ROOT}.{p}" if p else ROOT for p, *_ in rows),
                "path": tuple(path for path, *_ in rows),
                "type": tuple(kind for _, kind, *_ in rows),
                "parent": np.array([parent for *_, parent, _ in rows], np.int64),
                "is_fsdp": np.array([sharded for *_, sharded in rows], np.int64),
                "param_bytes": params,
                "buffer_bytes": np.zeros(len(rows), np.int64),
            }
        }

    def run(self, tokens: int) -> StepLog:
        """One step over a batch of `tokens`, from what is alive at its start."""
        log = self._log = StepLog()
        self._row = tokens * BF16_BYTES
        self._tokens = tokens
        for module, elements in self._all_params():
            log.alloc(self._shard_bytes(elements), "sharded_param", module)
            for _ in range(2):  # Adam's two moments
                log.alloc(self._shard_bytes(elements), "optimizer", module)
        batch = [log.alloc(tokens * INT64_BYTES, "input", -1) for _ in range(2)]
        log.work(10)
        self._grads: list[int] = []
        saved = self._forward()
        self._backward(saved)
        self._optimizer()
        log.free(*batch)
        return log

    def _forward(self) -> list[list[int]]:
        log, row, h = self._log, self._row, self._shape.hidden
        log.mark(0, "before_pre_forward")
        self._root = self._gather(0, self._root_params)
        log.mark(0, "after_pre_forward")
        saved = [self._leaf(self._embedding, [row * h], 20)]
        saved += [self._layer_forward(base) for base in self._layers]
        saved.append(self._leaf(self._norm, [row * h, self._tokens * FP32_BYTES], 8))
        logits = self._tokens * self._shape.vocabulary
        saved.append(self._leaf(self._head, [logits * BF16_BYTES], 120))
        log.mark(0, "before_post_forward")
        log.mark(0, "after_post_forward")
        # The root keeps its parameters: its backward comes at once.
        wide = log.alloc(logits * FP32_BYTES, "activation", 0)
        saved[-1].append(wide)
        log.work(40)
        return saved

    def _layer_forward(self, base: int) -> list[int]:
        log, row, shape = self._log, self._row, self._shape
        h, f, statistic = shape.hidden, shape.feed_forward, self._tokens * FP32_BYTES
        log.mark(base, "before_pre_forward")
        gathered = self._gather(base, self._params_of(base))
        log.mark(base, "after_pre_forward")
        kept = self._leaf(base + ATTENTION_NORM, [row * h, statistic], 8)
        log.mark(base + ATTENTION, "before_pre_forward")
        kept += self._leaf(base + QKV, [row * 3 * h], 60)
        kept.append(log.alloc(row * h, "activation", base + ATTENTION))
        heads = statistic * shape.num_heads
        kept.append(log.alloc(heads, "activation", base + ATTENTION))
        self._scratch(row * h, base + ATTENTION, 90)
        kept += self._leaf(base + OUT, [row * h], 20)
        log.mark(base + ATTENTION, "after_post_forward")
        kept += self._leaf(base + FFN_NORM, [row * h, statistic], 8)
        log.mark(base + FFN, "before_pre_forward")
        kept += self._leaf(base + GATE, [row * f], 55)
        kept += self._leaf(base + UP, [row * f], 55)
        kept.append(log.alloc(row * f, "activation", base + FFN))
        self._scratch(row * f, base + FFN, 10)
        kept += self._leaf(base + DOWN, [row * h], 55)
        log.mark(base + FFN, "after_post_forward")
        log.mark(base, "before_post_forward")
        log.free(*gathered)
        log.mark(base, "after_post_forward")
        return kept

    def _backward(self, saved: list[list[int]]) -> None:
        log, row, h = self._log, self._row, self._shape.hidden
        log.mark(0, "before_pre_backward")
        log.mark(0, "after_pre_backward")
        logits = self._tokens * self._shape.vocabulary
        root_grads = []
        upstream = log.alloc(row * h, "temp", 0)
        for module, elements in reversed(self._root_params[1:]):
            size = logits * BF16_BYTES if module == self._head else 0
            root_grads.append(self._leaf_backward(module, elements, saved.pop(), size))
        ahead = self._gather(self._layers[-1], self._params_of(self._layers[-1]))
        for index in reversed(range(len(self._layers))):
            base, gathered = self._layers[index], ahead
            log.mark(base, "before_pre_backward")
            log.mark(base, "after_pre_backward")
            ahead = []
            if index:  # the next layer is gathered while this one computes
                before = self._layers[index - 1]
                ahead = self._gather(before, self._params_of(before))
            downstream = log.alloc(row * h, "temp", base)
            grads = self._layer_backward(base, saved.pop())
            log.mark(base, "before_post_backward")
            self._reduce(base, grads, self._params_of(base))
            log.free(*gathered)
            log.mark(base, "after_post_backward")
            log.free(upstream)
            upstream = downstream
        module, elements = self._root_params[0]
        root_grads.append(self._leaf_backward(module, elements, saved.pop(), 0))
        log.mark(0, "before_post_backward")
        self._reduce(0, root_grads, self._root_params)
        log.free(*self._root, upstream)
        log.mark(0, "after_post_backward")

    def _layer_backward(self, base: int, kept: list[int]) -> list[int]:
        """Gradients of the layer, and what its forward kept given back on the way."""
        row, f = self._row, self._shape.feed_forward
        log, grads = self._log, []
        elements = dict(self._params_of(base))

        def leaf(place: int, num_kept: int, scratch: int) -> None:
            freed = [kept.pop() for _ in range(num_kept)]
            module = base + place
            grad = self._leaf_backward(module, elements[module], freed, scratch)
            grads.append(grad)

        log.mark(base + FFN, "before_pre_backward")
        leaf(DOWN, 1, row * f)
        log.free(kept.pop())
        leaf(UP, 1, row * f)
        leaf(GATE, 1, row * f)
        log.mark(base + FFN, "after_post_backward")
        leaf(FFN_NORM, 2, 0)
        log.mark(base + ATTENTION, "before_pre_backward")
        leaf(OUT, 1, 0)
        self._scratch(row * 3 * self._shape.hidden, base + ATTENTION, 180)
        log.free(kept.pop(), kept.pop())
        leaf(QKV, 1, 0)
        log.mark(base + ATTENTION, "after_post_backward")
        leaf(ATTENTION_NORM, 2, 0)
        return grads

    def _optimizer(self) -> None:
        log = self._log
        log.mark(-1, "before_optimizer")
        for _ in range(4):  # the fused update walks the shards in groups
            size = self._shard_bytes(self._shape.layer_elements)
            self._scratch(size, -1, 40)
        log.mark(-1, "after_optimizer")
        log.free(*self._grads)

    def _leaf(self, module: int, sizes: Sequence[int], us: int) -> list[int]:
        """A module without children runs forward and keeps activations."""
        log = self._log
        log.mark(module, "before_pre_forward")
        kept = [log.alloc(size, "activation", module) for size in sizes]
        log.work(us)
        log.mark(module, "after_post_forward")
        return kept

    def _leaf_backward(
        self, module: int, elements: int, kept: Iterable[int], scratch: int
    ) -> int:
        """It runs backward, frees what it kept and leaves a gradient."""
        log = self._log
        log.mark(module, "before_pre_backward")
        temp = log.alloc(scratch, "temp", module) if scratch else None
        grad = log.alloc(elements * BF16_BYTES, "unsharded_grad", module)
        log.work(60)
        log.free(*kept)
        if temp is not None:
            log.free(temp)
        log.mark(module, "after_post_backward")
        return grad

    def _scratch(self, size: int, module: int, us: int) -> None:
        temp = self._log.alloc(size, "temp", module)
        self._log.work(us)
        self._log.free(temp)

    def _gather(self, unit: int, params: Sequence[tuple[int, int]]) -> list[int]:
        """All-gather the parameters of a unit: one buffer, then the parameters."""
        log = self._log
        total = sum(elements for _, elements in params) * BF16_BYTES
        buffer = log.alloc(total, "all_gather", unit)
        log.work(15)
        gathered = [
            log.alloc(elements * BF16_BYTES, "unsharded_param", module)
            for module, elements in params
        ]
        log.free(buffer)
        return gathered

    def _reduce(
        self, unit: int, grads: Iterable[int], params: Sequence[tuple[int, int]]
    ) -> None:
        """Reduce-scatter the gradients of a unit into fp32 shards."""
        log = self._log
        total = sum(elements for _, elements in params)
        packed = log.alloc(total * BF16_BYTES, "reduce_scatter", unit)
        log.free(*grads)
        log.work(20)
        reduced = log.alloc(self._shard_bytes(total), "reduce_scatter", unit)
        log.free(packed)
        log.become(reduced, "sharded_grad")
        self._grads.append(reduced)

    def _params_of(self, base: int) -> list[tuple[int, int]]:
        return [(base + place, elements) for place, elements in self._layer_params]

    def _all_params(self) -> list[tuple[int, int]]:
        layers = [pair for base in self._layers for pair in self._params_of(base)]
        return [*self._root_params, *layers]

    def _shard_bytes(self, elements: int) -> int:
        """This rank's fp32 part of a tensor."""
        return max(1, -(-elements // self._shape.num_shards)) * FP32_BYTES
