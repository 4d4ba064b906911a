"""Trainings made by hand whose allocations are known: what, of which module, in which
phase. Times are nanoseconds; a step takes 10,000."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from tests.traces_builder import MadeTrace, memory_events

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.trace.trace import Trace

Layout: TypeAlias = Literal["plain", "zero_grad_late", "closure", "other_thread"]
LAYOUTS: tuple[Layout, ...] = ("plain", "zero_grad_late", "closure", "other_thread")
STEP_NS = 10_000
EVALUATE = "autograd::engine::evaluate_function: "


class Planted(NamedTuple):
    """What an allocation is."""

    category: str
    module: str
    phase: str


class Training(MadeTrace):
    """Slices, memory events, and by address of the latter what they are."""

    def __init__(self, device: tuple[int, int] = (1, 0)) -> None:
        super().__init__()
        self.track("main")
        self.device = device
        self.events: list[tuple[int, int, int, int]] = []
        self.planted: dict[int, Planted] = {}

    def alloc(
        self, at: int, num_bytes: int, until: int | None, what: Planted, track="main"
    ) -> int:
        """At one time, and until another; None: for good."""
        address = 1000 + len(self.planted)
        self.planted[address] = what
        self.events.append((at, self.track(track), num_bytes, address))
        if until is not None:
            self.free(until, num_bytes, address)
        return address

    def free(self, at: int, num_bytes: int, address: int, track: str = "main") -> None:
        self.events.append((at, self.track(track), -num_bytes, address))

    def trace(self, before_bytes: int | None = None) -> Trace:
        """`before_bytes`: allocated before; None: the trace does not say totals."""
        rows, total = [], before_bytes or 0
        for time, track, num_bytes, address in sorted(self.events):
            total += num_bytes
            said = -1 if before_bytes is None else total
            rows.append((time, num_bytes, address, *self.device, said, said, track))
        memory = memory_events(rows)
        return replace(self.build(), memory=memory)


def trained(layout: Layout = "plain", num_steps: int = 3) -> Training:
    """Two linear layers, Adam, a data loader."""
    made = Training()
    for step in range(num_steps):
        _step(made, step, layout, is_last=step == num_steps - 1)
    return made


def _step(made: Training, step: int, layout: Layout, *, is_last: bool) -> None:
    at = step * STEP_NS
    thread = "autograd" if layout == "other_thread" else "main"
    made.slice("main", f"ProfilerStep#{step}", at, STEP_NS - 10, "user_annotation")
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    made.slice("main", loader, at + 10, 90, "user_annotation")
    until = None if is_last else at + STEP_NS + 100
    made.alloc(at + 50, 100, until, Planted("input", "", "dataloader"))
    if layout == "closure":
        made.slice(
            "main", "Optimizer.step#Adam.step", at + 150, 5850, "user_annotation"
        )
    else:
        made.slice(
            "main", "Optimizer.step#Adam.step", at + 5000, 1000, "user_annotation"
        )
    made.slice("main", "nn.Module: Net_0", at + 200, 1800, "python_function")
    zero_grad = at + 2100 if layout == "zero_grad_late" else at + 6500
    made.slice(
        "main", "Optimizer.zero_grad#Adam.zero_grad", zero_grad, 100, "user_annotation"
    )
    if layout == "zero_grad_late":
        zero_grad += STEP_NS
    kept = is_last and layout == "zero_grad_late"
    for layer in (0, 1):
        _layer(made, layer, at, thread, None if kept else zero_grad + 50 + layer)
    # The loss lies outside of all modules, and goes when the next step's takes its name.
    loss = made.slice("main", "aten::nll_loss", at + 2020, 30)
    until = None if is_last else at + STEP_NS + 2035
    made.alloc(at + 2030, 4, until, Planted("activation", "", "forward"))
    node = made.slice(thread, EVALUATE + "NllLossBackward0", at + 2400, 50)
    made.flow("fwdbwd", loss, node)
    if step == 0:
        made.alloc(at + 5900, 600, None, Planted("optimizer", "", "optimizer"))
    made.alloc(at + 5910, 60, at + 5950, Planted("temp", "", "optimizer"))


def _layer(made: Training, layer: int, at: int, thread: str, freed: int | None) -> None:
    module = f"Linear_{layer}"
    begin = at + 210 + 800 * layer
    made.slice("main", f"nn.Module: {module}", begin, 700, "python_function")
    forward = made.slice("main", "aten::linear", begin + 100, 500)
    node_at = at + 3400 - 800 * layer
    node = made.slice(thread, EVALUATE + "AddmmBackward0", node_at, 500)
    made.slice(thread, "AddmmBackward0", node_at + 10, 400)
    made.flow("fwdbwd", forward, node)
    activation = made.alloc(
        begin + 150, 1000, None, Planted("activation", module, "forward")
    )
    made.free(node_at + 450, 1000, activation, thread)
    temp = Planted("temp", module, "forward")
    made.alloc(begin + 200, 50, begin + 300, temp)
    made.alloc(begin + 210, 70, begin + 650, temp)
    backward = Planted("temp", module, "backward")
    made.alloc(node_at + 100, 300, node_at + 490, backward, thread)
    # As the engine does: an outgoing gradient, used up by the last node.
    outgoing = backward._replace(category="activation_grad") if layer else backward
    gradient = made.alloc(node_at + 110, 200, None, outgoing, thread)
    made.free(at + 3895, 200, gradient, thread)
    made.alloc(
        node_at + 150, 400 + layer, freed, Planted("grad", module, "backward"), thread
    )


def sharded(num_steps: int = 2) -> Training:
    """Two units of FSDP2 without modules in the trace, and an optimizer."""
    made = Training()
    for step in range(num_steps):
        at = step * STEP_NS
        made.slice("main", f"ProfilerStep#{step}", at, STEP_NS - 10, "user_annotation")
        for unit in (0, 1):
            _unit_forward(made, f"layers.{unit}", at + 100 + 1000 * unit, at)
            _unit_backward(made, f"layers.{unit}", at + 5000 - 1000 * unit, at, unit)
        made.slice("main", "Optimizer.step#SGD.step", at + 7000, 100, "user_annotation")
        made.slice(
            "main",
            "Optimizer.zero_grad#SGD.zero_grad",
            at + 7200,
            100,
            "user_annotation",
        )
    return made


def _annotation(made: Training, name: str, unit: str, at: int, took: int) -> None:
    made.slice("main", f"FSDP::{name} ({unit})", at, took, "user_annotation")


def _unit_forward(made: Training, unit: str, at: int, step: int) -> None:
    _annotation(made, "pre_forward", unit, at, 200)
    _annotation(made, "all_gather", unit, at + 10, 90)
    gathered = Planted("all_gather", unit, "FSDP::all_gather")
    made.alloc(at + 50, 2000, at + 180, gathered)
    _annotation(made, "all_gather_copy_out", unit, at + 110, 80)
    whole = Planted("unsharded_param", unit, "FSDP::all_gather_copy_out")
    made.alloc(at + 120, 1900, at + 620, whole)
    forward = made.slice("main", "aten::linear", at + 300, 200)
    made.activation = made.alloc(  # type: ignore[attr-defined]
        at + 400, 500, None, Planted("activation", unit, "forward")
    )
    _annotation(made, "post_forward", unit, at + 600, 100)
    node_at = step + 5000 - 1000 * int(unit[-1])
    node = made.slice("main", EVALUATE + "AddmmBackward0", node_at, 600)
    made.flow("fwdbwd", forward, node)
    made.free(node_at + 550, 500, made.activation)  # type: ignore[attr-defined]


def _unit_backward(made: Training, unit: str, at: int, step: int, index: int) -> None:
    _annotation(made, "pre_backward", unit, at, 200)
    _annotation(made, "all_gather_copy_out", unit, at + 50, 80)
    whole = Planted("unsharded_param", unit, "FSDP::all_gather_copy_out")
    made.alloc(at + 60, 1900, at + 700, whole)
    made.alloc(at + 300, 1900, at + 850, Planted("unsharded_grad", unit, "backward"))
    made.slice("main", EVALUATE + "Reshard", at + 650, 300)
    _annotation(made, "post_backward_reshard", unit, at + 660, 100)
    _annotation(made, "post_backward_reduce", unit, at + 800, 140)
    made.slice("main", "c10d::_reduce_scatter_base_", at + 860, 60)
    reduced = "FSDP::post_backward_reduce"
    made.alloc(at + 870, 1950, at + 930, Planted("reduce_scatter", unit, reduced))
    made.alloc(
        at + 840, 950, step + 7250 + index, Planted("sharded_grad", unit, reduced)
    )
