"""Requests that were refused although there was room, and devices of unknown size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oom_cases.allocator import GiB, KiB, MiB
from tests.oom_cases.bench import Bench, card_bytes
from tests.oom_cases.truth import (
    LEAK_WORDS,
    OTHER_PROCESS,
    REALLY_FULL,
    UNCONDITIONAL,
    Truth,
)

if TYPE_CHECKING:
    from tests.oom_cases.allocator import Block

COMM_STREAM = 101_250_662_400


def freed_in_attempt(seed: int) -> tuple[Bench, Truth]:
    """The attempt waits for another stream, whose block then fits, but it is over.

    cudaMalloc fails, the allocator waits for the streams' events and frees what waited
    for them, and asks cudaMalloc again: it does not look among its own blocks once more.
    """
    bench = Bench("freed_in_attempt", seed, cards=("H100", "A100-40", "H200", "L40S"))
    device, total = bench.device, bench.device.total
    bench.choose_network(total * 0.12, layers=8)
    bench.weights = bench.load_model()
    script = bench.script
    gather = script.stack(script.user("aux"))
    keep = script.stack(script.user("keep"))
    room = bench.rng.uniform(0.34, 0.46)
    pieces = 1 + seed % 3
    buffers: list[Block] = []

    def program() -> None:
        bench.train_step(bench.tokens_for(total * 0.1))
        device.empty_cache()
        # One segment, which later serves several buffers and what stays behind them.
        bench.delete(bench.alloc(int(total * room), gather), "aux")
        part = int(total * room * 0.93) // pieces
        buffers.extend(bench.alloc(part, gather) for _ in range(pieces))
        bench.alloc(int(total * room * 0.02), keep)
        while device.free > total * room * 0.5:
            bench.alloc(int(total * 0.03), keep)
        for block in buffers:
            device.delete(block, gather, used_on=COMM_STREAM)
        bench.phase = "forward"
        wanted = part * pieces * bench.rng.uniform(0.8, 0.97)
        bench.alloc(int(wanted), script.stack(script.user("forward")))

    bench.run(program)
    return bench, Truth(
        ("fits",),
        must=(
            (
                r"synchroni[sz]e",
                r"retry|try (it )?again|catch",
            ),
            (r"record_stream", r"\bstream"),
        ),
        must_not=(
            REALLY_FULL,
            OTHER_PROCESS,
            *LEAK_WORDS,
            r"missing",
            r"smaller batch|checkpoint",
            r"expandable",
        ),
        facts=bench.asked(),
    )


def refused_with_room(seed: int) -> tuple[Bench, Truth]:
    """The driver serves no further segment, whatever the device has: nothing says why."""
    names = ("MI300X", "H100", "MI355X", "A100-40")
    number = (900, 260, 620, 140)[seed % 4]
    bench = Bench("refused_with_room", seed, cards=names, max_segments=number)
    total = bench.device.total
    bench.choose_network(total * 0.04, layers=8)
    script = bench.script
    keep = script.stack(script.user("keep"))
    work = script.stack(
        script.lib(("torch/nn/modules/linear.py", 125, "forward")),
        script.user("eval_forward"),
    )
    sizes = (24 * MiB, 40 * MiB, 72 * MiB, 96 * MiB)
    room = bench.rng.uniform(0.2, 0.5)

    def program() -> None:
        bench.load_model()
        while True:
            for _ in range(3):
                size = min(bench.rng.choice(sizes), int(total * room / number))
                bench.alloc(max(size, 22 * MiB), keep)
            moment = bench.alloc(bench.rng.choice(sizes), work)
            if bench.rng.random() < 0.6:
                bench.delete(moment, "eval_forward")

    bench.run(program)
    return bench, Truth(
        ("unsure",),
        must=(
            (r"not recorded|nothing (that was )?record|unknown|not known",),
            (
                rf"{bench.device.free / GiB:.1f} GiB",
                rf"{bench.device.free / GiB:.0f} GiB",
            ),
        ),
        must_not=(
            REALLY_FULL,
            OTHER_PROCESS,
            r"raise (the|that|this) limit",
            r"a limit (on|of) this process (refused|was reached)",
            *LEAK_WORDS,
        ),
        facts=bench.asked(),
        capacity=total if seed % 2 else None,
    )


def unknown_total(seed: int) -> tuple[Bench, Truth]:
    """What is there adds up to no card that is sold: somebody else may hold the rest."""
    names = ("H100", "H200", "A100-40", "H100")
    seen = (57.3, 104.6, 29.4, 66.4)[seed % 4] + 0.17 * (seed // 4 % 8)
    total = card_bytes(names[seed % 4])
    others = (total - int(seen * GiB)) // KiB * KiB
    bench = Bench("unknown_total", seed, cards=names, others=others)
    mine = total - others
    bench.choose_network(mine * 0.1, layers=8)
    bench.weights = bench.load_model()
    tokens = bench.tokens_for(mine * 0.3)

    def program() -> None:
        bench.train_step(tokens)
        for _ in range(4):
            bench.forward(tokens)

    bench.run(program)
    return bench, Truth(
        ("unsure", "other"),
        must=(
            (r"nvidia-smi|rocm-smi",),
            (r"--capacity|card|device'?s (size|capacity)",),
        ),
        must_not=(
            UNCONDITIONAL,
            rf"{OTHER_PROCESS} (holds|held|has|had|took|uses|used)",
            *LEAK_WORDS,
        ),
        first_advice=r"nvidia-smi|rocm-smi|--capacity|other process|another process",
        facts=bench.asked(),
    )
