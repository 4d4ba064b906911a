"""Memory that is given back late: by the collector of cycles, by streams, or never."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oom_cases.allocator import GiB, MiB, OutOfMemoryError
from tests.oom_cases.bench import Bench
from tests.oom_cases.truth import OTHER_PROCESS, Truth, line

if TYPE_CHECKING:
    from tests.oom_cases.allocator import Block

COMM_STREAM = 88_410_222_080


def reference_cycles(seed: int) -> tuple[Bench, Truth]:
    """Each step's outputs point at themselves: only the collector frees them, now and then."""
    bench = Bench("reference_cycles", seed)
    bench.ring_share = None
    total = bench.device.total
    net = bench.choose_network(total * 0.06, layers=8)
    bench.weights = bench.load_model()
    script, rng = bench.script, bench.rng
    tokens = bench.tokens_for(total * 0.12)
    layers = rng.randrange(2, 5)
    interval = rng.randrange(4, 8)
    aux = bench.tokens_for(total * 0.55 / interval, layers)
    lost: list[Block] = []

    def collect() -> None:
        # A collection begins wherever Python allocates: here while a batch is made.
        bench.device.tick(35_000)
        for block in lost:
            bench.delete(block, "batch")
        lost.clear()

    def program() -> None:
        for step in range(interval * rng.randrange(4, 6) + 1):
            if step and step % interval == rng.randrange(1, 3) % interval:
                collect()
            lost.extend(bench.forward(aux, "aux", layers=layers, net=net))
            bench.scratch = []
            bench.train_step(tokens)
        # The collector is late: fewer objects of Python are made.
        while True:
            lost.extend(bench.forward(aux, "aux", layers=layers, net=net))
            bench.scratch = []
            bench.train_step(tokens)

    bench.run(program)
    return bench, Truth(
        ("cycle",),
        must=(
            (r"cycle", r"gc\.collect", r"garbage|collector"),
            (
                line(*script.at("aux")),
                rf"{bench.flavour.file.rsplit('/', 1)[-1]}".replace(".", r"\."),
            ),
        ),
        must_not=(OTHER_PROCESS,),
        facts=bench.asked(),
    )


def recordstream_peak(seed: int) -> tuple[Bench, Truth]:
    """No error: gathered parameters wait for a stream, and are most of the peak."""
    bench = Bench("recordstream_peak", seed)
    bench.ring_share = None
    device, total = bench.device, bench.device.total
    bench.choose_network(total * 0.1, layers=8)
    bench.weights = bench.load_model()
    script, rng = bench.script, bench.rng
    gather = script.stack(
        script.lib(("torch/distributed/distributed_c10d.py", 4066, "all_gather")),
        script.user("aux"),
    )
    each = int(total * rng.uniform(0.02, 0.035))
    ahead = rng.randrange(7, 14)
    waiting: list[Block] = []

    def step(number: int) -> None:
        for _ in range(number):
            block = bench.alloc(each, gather, stream=COMM_STREAM)
            device.delete(block, gather, used_on=0)
            waiting.append(block)
            bench.delete(bench.alloc(48 * MiB, gather), "aux")
        for block in waiting:
            device.finish(block)
        waiting.clear()
        device.tick(40_000)

    for number in (2, 3, ahead, 3, 2):
        step(number)
    pending = each * ahead / GiB
    return bench, Truth(
        ("none",),
        must=(
            (r"\bpending", r"await", r"not yet", r"wait(s|ing|ed)?\b"),
            (rf"\b{pending:.1f} GiB", rf"\b{pending:.2f} GiB"),
        ),
        must_not=(r"\bleak",),
    )


def pinned_growth(seed: int) -> tuple[Bench, Truth]:
    """No error on the device: every step pins a batch on the host and keeps it."""
    bench = Bench("pinned_growth", seed)
    bench.ring_share = None
    bench.choose_network(bench.device.total * 0.08, layers=8)
    bench.weights = bench.load_model()
    script, rng = bench.script, bench.rng
    pin = script.stack(
        script.lib(("torch/utils/data/_utils/pin_memory.py", 58, "pin_memory")),
        script.user("prefetch"),
    )
    host = bench.add_host(64 * GiB)
    each = rng.randrange(60, 240) * MiB
    tokens = bench.tokens_for(bench.device.total * 0.2)
    try:
        for _ in range(rng.randrange(24, 40)):
            host.now_us = bench.device.now_us
            host.alloc(each, pin)
            host.delete(host.alloc(each // 3, pin), pin)
            bench.train_step(tokens)
    except OutOfMemoryError as error:
        raise AssertionError("no error was meant") from error
    return bench, Truth(
        ("none",),
        must=((r"pinned",), (line(*script.at("prefetch")), r"pin_memory\.py")),
        must_not=(r"detached copies", r"\bfine\b"),
    )
