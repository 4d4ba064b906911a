"""Programs made allocation by allocation, with stacks as `stacks="python"` records them.

Every allocation has a segment of its own, so that what is reserved is what is active.
Autograd's threads have no Python: what backward allocates bears no frames.
"""

from __future__ import annotations

from typing import Any

from memboard.collector.format.snapshots import tables_of
from memboard.tb_plugin.analysis.allocator.lifetimes import OOM
from memboard.tb_plugin.analysis.allocator.replay import Replay
from memboard.tb_plugin.analysis.oom.errors import OomError, errors_of
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
from tests.made_snapshots import block, event, frame, segment

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

TORCH = "/venv/lib/python3.12/site-packages/torch/"
CALL = [
    frame("_call_impl", 1879, TORCH + "nn/modules/module.py"),
    frame("_wrapped_call_impl", 1857, TORCH + "nn/modules/module.py"),
]
LINEAR = frame("forward", 134, TORCH + "nn/modules/linear.py")


def at(name: str, line: int, filename: str = "/home/me/train.py") -> dict:
    return frame(name, line, filename)


def in_loop(line: int) -> list[dict]:
    """A line of the training loop itself."""
    return [at("train", line), at("<module>", 200)]


def in_module(line: int, *, loop_line: int = 41) -> list[dict]:
    """A line of the model's forward, called by the loop."""
    return [
        LINEAR,
        *CALL,
        at("forward", line, "/home/me/model.py"),
        *CALL,
        *in_loop(loop_line),
    ]


def in_optimizer(line: int = 431, name: str = "_multi_tensor_adamw") -> list[dict]:
    return [
        frame(name, line, TORCH + "optim/adamw.py"),
        frame("step", 243, TORCH + "optim/adamw.py"),
        frame("wrapper", 516, TORCH + "optim/optimizer.py"),
        *in_loop(44),
    ]


BATCH = in_loop(40)
LOSS = in_loop(42)


class Program:
    """What a program asked of the allocator."""

    def __init__(self) -> None:
        self.trace: list[dict] = []
        self.live: dict[int, dict[str, Any]] = {}
        self.pending: dict[int, dict[str, Any]] = {}
        self.cached: dict[int, dict[str, Any]] = {}
        self.peak_bytes = 0
        self._next = 0x7F0000000000
        self._now = 1_700_000_000_000_000

    def _tell(self, action: str, addr: int, size: int, **more: Any) -> None:
        self._now += 10
        self.trace.append(event(action, addr, size, self._now, **more))

    def alloc(
        self,
        size: int,
        frames: list[dict],
        *,
        stream: int = 0,
        pool: int | tuple[int, int] = 0,
    ) -> int:
        """`pool`: a number is that of one that the program made."""
        addr, self._next = self._next, self._next + max(size, 2 * MIB) + 512
        pool_id = (0, pool) if isinstance(pool, int) else pool
        told = {"stream": stream, "pool_id": pool_id, "frames": frames}
        self._tell("segment_alloc", addr, size, **told)
        self._tell("alloc", addr, size, **told)
        self.live[addr] = {"size": size, **told}
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        return addr

    def free(self, *addrs: int) -> None:
        for addr in addrs:
            self.request_free(addr)
            told = self.pending.pop(addr)
            self._tell("free_completed", addr, **told)
            self._tell("segment_free", addr, **told)

    def let_go(self, *addrs: int) -> None:
        """Free, and keep the segments, as private pools do."""
        for addr in addrs:
            self.request_free(addr)
            told = self.cached[addr] = self.pending.pop(addr)
            self._tell("free_completed", addr, **told)

    def give_back(self, *addrs: int) -> None:
        """Cached segments go: the event bears the stack that they came with."""
        for addr in addrs:
            self._tell("segment_free", addr, **self.cached.pop(addr))

    def request_free(self, addr: int) -> None:
        """Another stream still uses it."""
        told = self.live.pop(addr)
        self._tell("free_requested", addr, **told)
        self.pending[addr] = told

    def oom(
        self,
        size: int,
        frames: list[dict],
        *,
        device_free: int = 0,
        stream: int = 0,
        pool: int | None = None,
    ) -> None:
        """`pool`: None, as before torch 2.13, which does not record the request's."""
        more = {} if pool is None else {"pool_id": (0, pool)}
        self._tell("oom", 0, size, frames=frames, stream=stream, **more)
        self.trace[-1]["device_free"] = device_free

    def snapshot(self) -> dict[str, Any]:
        segments = [
            segment(
                addr,
                [
                    block(
                        addr,
                        told["size"],
                        state,
                        requested_size=told["size"],
                        frames=told.get("frames", []),
                    )
                ],
                stream=told["stream"],
                segment_pool_id=told["pool_id"],
            )
            for held, state in (
                (self.live, "active_allocated"),
                (self.pending, "active_pending_free"),
                (self.cached, "inactive"),
            )
            for addr, told in held.items()
        ]
        segments.sort(key=lambda one: one["address"])
        return {"segments": segments, "device_traces": [self.trace]}

    @property
    def live_bytes(self) -> int:
        return sum(told["size"] for told in self.live.values())

    def errors(self) -> tuple[OomError, ...]:
        """What the analysis makes of its errors."""
        return judged(self.snapshot())


class _Device:
    def __init__(self, replay: Replay) -> None:
        from memboard.tb_plugin.analysis.categories.attribution import attribution
        from memboard.tb_plugin.analysis.snapshots.steps import steps_of

        self.replay = replay
        self.steps = steps_of(replay.snapshot, replay.device)
        self.attribution = attribution(replay)


def judged(snapshot: dict[str, Any]) -> tuple[OomError, ...]:
    """The errors of a snapshot."""
    read = snapshot_of(tables_of(snapshot))
    devices = [_Device(Replay(read, device)) for device in read.devices]
    assert any(len(one.replay.device.events.of_action(OOM)) for one in devices)
    return errors_of(devices).errors


class Training(Program):
    """A model of some layers, trained; nothing marks its steps."""

    def __init__(self, *, layers: int = 8, weight: int = 64 * MIB) -> None:
        super().__init__()
        self.layers, self.weight = layers, weight
        self.batch = self.output = None
        made = [at("__init__", 12, "/home/me/model.py"), at("<module>", 190)]
        for _ in range(layers):
            self.alloc(weight, made)
        self.has_states = False

    def forward(self, unit: int, *, line: int = 41) -> list[int]:
        batch = self.alloc(unit // 4, BATCH)
        if self.batch is not None:
            self.free(self.batch)
        self.batch = batch
        held = []
        for _ in range(self.layers):
            passing = self.alloc(unit // 2, in_module(21, loop_line=line))
            held.append(self.alloc(unit, in_module(22, loop_line=line)))
            self.free(passing)
        output = self.alloc(unit, in_module(30, loop_line=line))
        if self.output is not None:
            self.free(self.output)
        self.output = output
        return held

    def backward(self, held: list[int], unit: int) -> list[int]:
        loss = self.alloc(512, LOSS)
        grads = []
        for addr in reversed(held):
            passing = self.alloc(unit, [])
            grads.append(self.alloc(self.weight, []))
            self.free(addr, passing)
        self.free(loss)
        return grads

    def step(self, unit: int) -> None:
        grads = self.backward(self.forward(unit), unit)
        if not self.has_states:
            for _ in range(2 * self.layers):
                self.alloc(self.weight, in_optimizer(151, "_init_group"))
            self.has_states = True
        passing = [self.alloc(self.weight, in_optimizer()) for _ in range(3)]
        self.free(*passing, *grads)
