"""A window's part of the log as a capture."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from collector.clock.process_clock import now_ns
from collector.format.records import Capture
from collector.modules.log import (
    BOUNDARY_WIDTH,
    EVENT_WIDTH,
    boundary_columns,
    event_columns,
)
from collector.modules.session import rounding_bytes

if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence

    from collector.format.records import IntArray
    from collector.functions.contract import Call
    from collector.modules.session import Session


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A tracked call under way: where it began in the session's log."""

    call: Call
    start_ns: int
    alive: array[int]
    """Event rows of what was alive when it began."""
    first_event: int
    first_boundary: int


def open_window(session: Session, call: Call) -> Window:
    """Begin a window of a session that runs."""
    return Window(
        call=call,
        first_event=session.log.num_events,
        first_boundary=session.log.num_boundaries,
        alive=session.ledger.alive(),
        start_ns=time.perf_counter_ns(),
    )


def make_capture(
    session: Session, window: Window, *, estimate: str, error: BaseException | None
) -> Capture:
    """What happened in a window that ends now, `error` being what ended it."""
    call, log = window.call, session.log
    events = log.events[window.first_event * EVENT_WIDTH :]
    boundaries = log.boundaries[window.first_boundary * BOUNDARY_WIDTH :]
    num_alive = len(window.alive) // EVENT_WIDTH
    reasons = session.reasons()
    if error is not None:
        reasons.append(f"the call ended with {type(error).__name__}")
    incomplete = error is not None or session.failure is not None or log.num_dropped > 0
    device_types = [device.type for device in session.ledger.devices]
    device_type = next((kind for kind in device_types if kind != "cpu"), "cpu")
    return Capture(
        kind="modules",
        time_ns=now_ns(),
        step=call.step,
        phase=call.phase,
        function=call.function,
        iteration=call.iteration,
        meta={
            "backend": "fsdp2" if session.sharding.units else "plain",
            "world": world(session),
            "root": session.tree.root_name,
            "devices": [str(device) for device in session.ledger.devices],
            "device_type": device_type,
            "estimate": estimate,
            "incomplete": incomplete,
            "inputs": session.inputs,
            "optimizers": session.optimizers.num_optimizers,
            "torch": str(torch.__version__),
            "rounding_bytes": rounding_bytes(device_type),
            "num_events_dropped": log.num_dropped,
            "reasons": reasons,
        },
        tables={
            "modules": module_columns(session),
            "events": event_columns(window.alive, events, window.start_ns),
            "boundaries": boundary_columns(
                boundaries, window.start_ns, num_alive - window.first_event
            ),
        },
    )


def module_columns(session: Session) -> dict[str, Any]:
    """The `modules` table: the tree, and the bytes of each module's own parameters."""
    tree = session.tree
    sharded = {index for unit in session.sharding.units for index in unit.modules}
    params, buffers = session.own_bytes
    return {
        "fqn": tuple(tree.fqn(index) for index in range(len(tree))),
        "path": tuple(tree.paths),
        "type": tuple(type(module).__name__ for module in tree.modules),
        "parent": _integers(tree.parents),
        "is_fsdp": _integers([int(index in sharded) for index in range(len(tree))]),
        "param_bytes": _integers(params),
        "buffer_bytes": _integers(buffers),
    }


def world(session: Session) -> str:
    """How many ranks share the model, and how, in words.

    `shard 4`, `replicate 2 x shard 4`, or the number of ranks.
    """
    for unit in session.sharding.units:
        for group in unit.groups:
            info = getattr(group, "mesh_info", None)
            parts = [
                f"{word} {size}"
                for word in ("replicate", "shard")
                if (size := getattr(info, f"{word}_mesh_size", None)) is not None
            ]
            if parts:
                return " x ".join(parts)
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return str(torch.distributed.get_world_size())
    return "1"


def _integers(values: Sequence[int]) -> IntArray:
    return np.array(values, dtype=np.int64)
