"""Gradients of activations are told from temporary memory, and from parameters' gradients."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.format.memory import CATEGORIES
from memboard.collector.format.snapshots import tables_of
from memboard.tb_plugin.analysis.allocator.replay import Replay
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.categories.attribution import attribution
from memboard.tb_plugin.analysis.snapshots.extras import Tensors
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
from tests.tb_plugin.analysis.made_programs import (
    BATCH,
    MIB,
    Program,
    at,
    in_loop,
    in_module,
    in_optimizer,
)

MODEL = [at("__init__", 12, "/home/me/model.py"), at("<module>", 190)]
ENGINE: list[dict] = []
"""Its thread has no Python."""
RECOMPUTED = [
    *in_module(30)[:-2],
    {"name": "recompute_fn", "filename": "/x/torch/utils/checkpoint.py", "line": 1},
    {"name": "unpack_hook", "filename": "/x/torch/utils/checkpoint.py", "line": 2},
]


@dataclass(frozen=True)
class Layer:
    """One node of autograd; sizes in MiB."""

    size: int
    """Of its output, and so of that one's gradient."""
    weight: int = 0
    saves: bool = True
    temp: int = 0
    recomputes: bool = False


@dataclass
class Trained(Program):
    """Steps as autograd's engine makes them, and what each allocation is."""

    layers: tuple[Layer, ...]
    context: str = "all"
    kinds: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        self.weights = {
            row: self.made("param", layer.weight, MODEL)
            for row, layer in enumerate(self.layers)
            if layer.weight
        }
        self.grads: dict[int, int] = {}

    def made(self, kind: str, mebibytes: int, frames: list[dict]) -> int:
        addr = self.alloc(mebibytes * MIB, frames)
        self.kinds[addr] = kind
        return addr

    def freed(self, addr: int, frames: list[dict]) -> None:
        if self.context == "all":
            self.live[addr] = {**self.live[addr], "frames": frames}
        self.free(addr)

    def step(self, *, micro_batches: int = 1, stops_at: int = -1) -> None:
        for _ in range(micro_batches):
            batch = self.made("input", self.layers[0].size, BATCH)
            saved = [
                self.made("activation", layer.size, in_module(10 + row))
                if layer.saves and not layer.recomputes
                else None
                for row, layer in enumerate(self.layers)
            ]
            if not self.backward(saved, stops_at):
                return
            self.freed(batch, in_loop(45))
        self.freed(self.made("temp", 1, in_optimizer()), in_optimizer())
        for grad in self.grads.values():
            self.freed(grad, in_optimizer(1000, "zero_grad"))
        self.grads.clear()

    def backward(self, saved: list[int | None], stops_at: int) -> bool:
        arriving = self.alloc(4, ENGINE)
        self.kinds[arriving] = "activation_grad"  # of the loss: one number
        for row in reversed(range(len(self.layers))):
            layer, kept = self.layers[row], saved[row]
            if layer.recomputes:
                passing = self.made("temp", layer.size, RECOMPUTED)
                kept = self.made("activation", layer.size, RECOMPUTED)
                self.freed(passing, RECOMPUTED)
            temp = self.made("temp", layer.temp, ENGINE) if layer.temp else None
            leaving = None
            if row:
                size = self.layers[row - 1].size
                leaving = self.made("activation_grad", size, ENGINE)
            if stops_at == row:
                self.oom(1 << 40, ENGINE)
                return False
            grad = None
            if layer.weight:
                grad = self.made("grad", layer.weight, ENGINE)
            if temp is not None:
                self.freed(temp, ENGINE)
            self.freed(arriving, ENGINE)
            if kept is not None:
                self.freed(kept, ENGINE)
            if grad is not None and self.grads.setdefault(row, grad) != grad:
                self.freed(grad, ENGINE)  # it was added to the one that is there
            if leaving is None:
                break
            arriving = leaving
        return True

    def replayed(self, *, knows_parameters: bool) -> Replay:
        snapshot = snapshot_of(tables_of(self.snapshot()))
        if knows_parameters:
            sizes = [self.layers[row].weight * MIB for row in self.weights]
            tensors = Tensors(
                address=np.array(list(self.weights.values()), np.int64),
                num_bytes=np.array(sizes, np.int64),
                category=np.full(len(sizes), CATEGORIES.index("param")),
                name=tuple(f"{row}.weight" for row in self.weights),
                device=np.full(len(sizes), NOTHING),
            )
            snapshot = replace(snapshot, tensors=tensors)
        (device,) = [one for one in snapshot.devices if len(one.events)]
        return Replay(snapshot, device)

    def told(self, *, knows_parameters: bool = False) -> list[tuple[str, str, int]]:
        """Of each allocation: what it is, what is said of it, and bytes."""
        replay = self.replayed(knows_parameters=knows_parameters)
        category = attribution(replay).category
        return [
            (self.kinds[int(addr)], CATEGORIES[category[row]], int(size))
            for row, (addr, size) in enumerate(
                zip(replay.lives.addr, replay.lives.size, strict=True)
            )
        ]


def share_found(told: list[tuple[str, str, int]]) -> float:
    """Of the gradients of activations, by bytes; nothing else may be called so."""
    wrong = [row for row in told if row[1] == "activation_grad" != row[0]]
    assert not wrong
    sizes = [(said, size) for kind, said, size in told if kind == "activation_grad"]
    right = sum(size for said, size in sizes if said == "activation_grad")
    return right / sum(size for _, size in sizes)


LAYERS = (Layer(4, 5, temp=3), Layer(6, 7), Layer(6, saves=False), Layer(8, 9, temp=8))


@pytest.mark.parametrize("knows_parameters", [False, True])
@pytest.mark.parametrize("context", ["all", "alloc"])
def test_gradients_that_outlive_their_node_are_activations(context, knows_parameters):
    training = Trained(LAYERS, context)
    for _ in range(3):
        training.step(micro_batches=2)
    told = training.told(knows_parameters=knows_parameters)
    # Without stacks of frees nobody knows who freed what goes after the last allocation.
    assert share_found(told) == pytest.approx(1 if context == "all" else 0.75, abs=0.01)
    kinds = {(kind, said) for kind, said, _ in told}
    assert ("param", "param") in kinds
    assert ("activation", "activation") in kinds
    assert ("grad", "grad") in kinds
    assert {said for kind, said in kinds if kind == "temp"} == {"temp"}


@pytest.mark.parametrize("context", ["all", "alloc"])
def test_as_large_as_parameters_they_are_told_where_those_gradients_stay(context):
    layers = tuple(Layer(4, 4) for _ in range(5))
    training = Trained(layers, context)
    for _ in range(3):
        training.step()
    whole = 1 if context == "all" else 0.75
    assert share_found(training.told()) == pytest.approx(whole, abs=0.01)
    accumulates = Trained(layers, context)
    for _ in range(3):
        accumulates.step(micro_batches=4)
    first = whole / 4  # gradients stay in the first backward of four alone
    assert share_found(accumulates.told()) == pytest.approx(first, abs=0.01)


@pytest.mark.parametrize("context", ["all", "alloc"])
def test_recomputed_activations_are_activations(context):
    layers = tuple(
        Layer(4 + row, 20 + row, recomputes=row % 2 == 0) for row in range(6)
    )
    training = Trained(layers, context)
    for _ in range(2):
        training.step()
    told = training.told()
    assert share_found(told) == pytest.approx(1 if context == "all" else 0.87, abs=0.01)
    recomputed = [said for kind, said, _ in told if kind == "activation"]
    assert recomputed.count("activation") / len(recomputed) > 0.8
    passing = {said for kind, said, _ in told if kind == "temp"}
    assert passing == {"temp"}


@pytest.mark.parametrize("context", ["all", "alloc"])
def test_an_error_in_a_backward_leaves_them_known(context):
    training = Trained(LAYERS, context)
    training.step()
    training.step(stops_at=1)
    told = training.told(knows_parameters=True)
    share_found(told)
    # One had arrived at the node that failed; what this made itself may be anything.
    assert told[-2] == ("activation_grad", "activation_grad", LAYERS[1].size * MIB)
    assert told[-1][0] == "activation_grad" != told[-1][1]


def test_flat_parameters_hide_whose_gradient_it_is():
    flat = [at("_alloc_padded_unsharded_flat_param", 3, "/x/fsdp/_flat_param.py")]
    training = Trained(LAYERS)
    training.made("param", 11, flat)
    training.step()
    assert "activation_grad" not in {said for _, said, _ in training.told()}


_SIZES = st.integers(1, 4)
_LAYER = st.builds(
    Layer,
    size=_SIZES,
    weight=st.sampled_from((0, 1, 2, 3, 4)),
    saves=st.booleans(),
    temp=st.sampled_from((0, 1, 2, 3)),
    recomputes=st.booleans(),
)


@given(
    layers=st.lists(_LAYER, min_size=1, max_size=8).map(tuple),
    context=st.sampled_from(("all", "alloc")),
    steps=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    stops_at=st.integers(-1, 7),
    knows_parameters=st.booleans(),
)
def test_nothing_else_is_ever_called_so(
    layers, context, steps, stops_at, knows_parameters
):
    training = Trained(layers, context)
    for micro_batches in steps:
        training.step(micro_batches=micro_batches)
    training.step(stops_at=stops_at)
    # That nothing else is called so is asserted there.
    assert 0 <= share_found(training.told(knows_parameters=knows_parameters)) <= 1
