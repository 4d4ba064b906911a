"""The workbench on which programs run until the device is out of memory."""

from __future__ import annotations

import contextlib
import math
import random
from typing import TYPE_CHECKING, Any

from tests.oom_cases import dump
from tests.oom_cases.allocator import (
    DEFAULT_POOL,
    Device,
    GiB,
    KiB,
    MiB,
    OutOfMemoryError,
)
from tests.oom_cases.network import FLAVOURS, Network, Op
from tests.oom_cases.stacks import STYLES, Script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.oom_cases.allocator import Block, Frames, Pool

# What cudaMemGetInfo calls the total of common cards, in GiB.
CARDS = {
    "V100": 15.77,
    "RTX 4090": 23.52,
    "A100-40": 39.39,
    "L40S": 44.39,
    "H100": 79.10,
    "H200": 139.72,
    "MI300X": 191.98,
    "MI355X": 287.98,
}
VERSIONS = ((2, 6), (2, 8), (2, 10), (2, 13))


def card_bytes(name: str) -> int:
    """Bytes of a card."""
    return int(CARDS[name] * GiB) // (64 * KiB) * 64 * KiB


class Bench:
    """One process with its GPUs, its script and how its memory was recorded.

    Four variants differ in the card, the style of the script, torch's release, the
    stacks, the annotations, the ring and the moment of the dump.
    """

    def __init__(
        self,
        kind: str,
        seed: int,
        *,
        flavour: str | None = None,
        cards: tuple[str, ...] = ("RTX 4090", "A100-40", "H100", "L40S"),
        num_devices: int = 1,
        total: int | None = None,
        others: int | None = None,
        limit: int | None = None,
        max_segments: int | None = None,
    ) -> None:
        self.rng = random.Random(f"{kind}/{seed}")
        self.seed = seed
        self.card = cards[seed % len(cards)]
        # Each kind combines traits in an order of its own.
        turn = random.Random(kind)
        orders = [turn.sample(range(4), 4) for _ in range(3)]
        at = (seed + seed // 4) % 4
        release, style, trait = (order[at] for order in orders)
        self.version = VERSIONS[release]
        self.stacks = "all" if trait == 2 else "python"
        self.context = "alloc" if trait == 1 else "all"
        self.marks = trait in {0, 2}
        self.ring_share = 0.6 if trait == 3 else None
        self.late = seed % 2 == 1
        self.conf = ""
        self.script = Script(self.rng, STYLES[style], self.version, self.stacks)
        names = ("llama", "gpt", "vit", "llama")
        self.flavour = next(
            f for f in FLAVOURS if f.name == (flavour or names[seed % 4])
        )
        start = 1_750_000_000_000_000 + self.rng.randrange(10**12)
        self.devices = [
            Device(
                index,
                card_bytes(self.card) if total is None else total,
                others=self.rng.randrange(380, 620) * MiB if others is None else others,
                limit=limit,
                max_segments=max_segments,
                start_us=start,
            )
            for index in range(num_devices)
        ]
        self.device = self.devices[0]
        self.host: Device | None = None
        self.annotations: list[dict[str, Any]] = []
        self.phase = ""
        self.has_room = False
        self.scratch: list[Block] = []
        self.net: Network
        self.weights: list[Block] = []
        self.grads: dict[int, Block] = {}
        self.states: list[Block] = []

    def add_host(self, total: int) -> Device:
        """Give the process pinned memory, whose history torch has since 2.14."""
        self.host = Device(-1, total, others=0, start_us=self.device.now_us)
        return self.host

    def choose_network(
        self,
        budget: float,
        *,
        bytes_per_weight: int = 2,
        vocabulary: int | None = None,
        layers: int | None = None,
    ) -> Network:
        """Take a model whose weights need about this many bytes."""
        layers = layers or self.rng.choice((12, 16, 20, 24))
        words = 1000 if self.flavour.name == "vit" else 32000
        words = vocabulary or words
        values = budget / bytes_per_weight
        # layers * 12 * width^2 + 2 * words * width = values
        square, linear = 12 * layers, 2 * words
        width = (-linear + math.sqrt(linear**2 + 4 * square * values)) / (2 * square)
        width = max(256, int(width) // 64 * 64)
        self.net = Network(self.flavour, width, layers, words, bytes_per_weight)
        return self.net

    def alloc(
        self, nbytes: int, frames: Frames, stream: int = 0, pool: Pool = DEFAULT_POOL
    ) -> Block:
        """Allocate on the device in use."""
        self.device.tick(self.rng.randrange(5, 90))
        return self.device.alloc(int(nbytes), frames, stream=stream, pool=pool)

    def delete(self, block: Block, site: str = "forward") -> None:
        """Free, as the line of the script does."""
        self.device.delete(block, self.script.stack(self.script.user(site)))

    def load_model(self, site: str = "move", net: Network | None = None) -> list[Block]:
        """Move a model to the device."""
        module = "torch/nn/modules/module.py"
        apply = ((module, 915, "_apply"),) * 3
        frames = self.script.stack(
            self.script.lib((module, 1355, "convert"), *apply, (module, 1369, "to")),
            self.script.user(site),
        )
        made = [self.alloc(size, frames) for size in (net or self.net).weights()]
        self.device.tick(400_000)
        return made

    def forward(
        self,
        tokens: int,
        site: str = "forward",
        *,
        layers: int | None = None,
        keeps: bool = True,
        net: Network | None = None,
    ) -> list[Block]:
        """Run the layers; returns what is kept for backward, or the last layer's output."""
        self.phase = "forward"
        net = net or self.net
        kept: list[Block] = []
        self.scratch = kept
        for _ in range(net.layers if layers is None else layers):
            temporary: list[Block] = []
            for mlp, ops in ((False, net.flavour.attention), (True, net.flavour.mlp)):
                for op in ops:
                    block = self._op(tokens, op, site, net, mlp=mlp)
                    (kept if op.kept and keeps else temporary).append(block)
            if not keeps:
                for block in kept:
                    self.delete(block, site)
                kept[:] = [temporary.pop()]
            for block in temporary:
                self.delete(block, site)
        return kept

    def _op(self, tokens: int, op: Op, site: str, net: Network, *, mlp: bool) -> Block:
        nbytes = int(tokens * op.width * net.width) * 2
        return self.alloc(nbytes, net.op_stack(self.script, op, site, mlp=mlp))

    def loss(self, tokens: int, site: str = "forward") -> list[Block]:
        """Logits and the loss of them, in the weights' type."""
        self.phase = "forward"
        net = self.net
        frames = net.head_stack(self.script, site)
        logits = self.alloc(tokens * net.vocabulary * 2, frames)
        self.scratch = [*self.scratch, logits]
        return [logits, self.alloc(512, self.script.stack(self.script.user("loss")))]

    def backward(self, kept: list[Block]) -> None:
        """Free activations from the last to the first, and make the weights' gradients."""
        self.phase = "backward"
        frames = self.script.on_autograd_thread()
        free = frames
        sizes = self.net.weights()
        left = len(sizes)
        flowing: Block | None = None
        for done, block in enumerate(reversed(kept), 1):
            gradient = self.alloc(block.requested, frames)
            if flowing is not None:
                self.device.delete(flowing, free)
            flowing = gradient
            self.device.delete(block, free)
            while left > len(sizes) * (1 - done / len(kept)):
                left -= 1
                if left not in self.grads:
                    self.grads[left] = self.alloc(sizes[left], frames)
        if flowing is not None:
            self.device.delete(flowing, free)
        self.scratch = []

    def step(self, state_bytes: int | None = None) -> None:
        """AdamW: the first call makes two states for each weight."""
        self.phase = "optimizer"
        with self.marked("Optimizer.step#AdamW.step"):
            sizes = self.net.weights()
            if not self.states:
                per = state_bytes or self.net.bytes_per_weight
                for size in sizes:
                    whole = size // self.net.bytes_per_weight * per
                    for name in ("exp_avg", "exp_avg_sq"):
                        frames = self.script.optimizer(name)
                        self.states.append(self.alloc(whole, frames))
            frames = self.script.optimizer("temporary")
            batch = sizes[: max(1, len(sizes) // 8)]
            temporary = [self.alloc(size, frames) for size in batch]
            for block in temporary:
                self.delete(block, "step")

    def zero_grad(self) -> None:
        """Set gradients to None."""
        with self.marked("Optimizer.zero_grad#AdamW.zero_grad"):
            for block in self.grads.values():
                self.delete(block, "zero")
            self.grads = {}

    def train_step(self, tokens: int) -> None:
        """One whole step."""
        with self.marked("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
            frames = self.script.stack(self.script.user("batch"))
            batch = self.alloc(tokens * 8, frames)
        kept = self.forward(tokens)
        kept += self.loss(tokens)
        self.backward(kept)
        self.step()
        self.zero_grad()
        self.delete(batch, "batch")
        self.device.tick(180_000)

    @contextlib.contextmanager
    def marked(self, name: str) -> Iterator[None]:
        """Record an annotation, where the recording has them."""
        device = self.device
        self._mark("START", name)
        yield
        device.tick(11)
        self._mark("END", name)

    def _mark(self, stage: str, name: str) -> None:
        device = self.device
        if self.marks and device.recording:
            made = {"stage": stage, "name": name, "device": device.index}
            self.annotations.append(made | {"time_us": device.now_us})

    def run(self, program: Callable[[], None]) -> None:
        """Run until the device is out of memory, which it must be."""
        try:
            program()
        except OutOfMemoryError as error:
            self.device = self.devices[error.device]
            last = self.device.events[-1]
            free = self.device.free_blocks(last["pool_id"], last["stream"])
            pieces = sum(block.size for block in free)
            # The pieces would have been enough, and are no small part of the whole: at
            # 8 % and more, who reads the state alone may call it fragmented.
            enough = self.device.free + pieces >= error.size
            self.has_room = enough and pieces >= self.device.reserved * 0.08
            self._unwind()
        else:
            raise AssertionError("the program ended without an error")

    def asked(self) -> tuple[tuple[str, int], ...]:
        """Return the figures of the error that ended the program."""
        last = [e for e in self.device.events if e["action"] == "oom"][-1]
        return (
            ("requested_bytes", last["size"]),
            ("device_free_bytes", last["device_free"]),
            ("device", self.device.index),
        )

    def _unwind(self) -> None:
        # The exception's frames give up what they held, where the dump comes later.
        if not self.late:
            return
        self.device.tick(900_000)
        for block in self.scratch:
            if block.state == "active_allocated":
                self.delete(block)

    def tokens_for(self, nbytes: float, layers: int | None = None) -> int:
        """How many tokens fill this many bytes with activations."""
        share = 1.0 if layers is None else layers / self.net.layers
        return max(64, int(nbytes / (self.net.per_token() * share)) // 64 * 64)

    def snapshot(self) -> dict[str, Any]:
        """Dump, with what the ring has kept."""
        events = max(len(d.events) for d in self.devices)
        ring = None if self.ring_share is None else int(events * self.ring_share)
        return dump.snapshot(
            self.devices,
            version=self.version,
            annotations=self.annotations,
            max_entries=ring,
            context=self.context,
            conf=self.conf,
            host=self.host,
        )
