"""Programs for which memory is there, but not for the request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oom_cases.allocator import GiB, KiB, MiB
from tests.oom_cases.bench import Bench, card_bytes
from tests.oom_cases.programs.too_large import fills, first_that_dies
from tests.oom_cases.truth import (
    HEDGES,
    LEAK_WORDS,
    OTHER_PROCESS,
    REALLY_FULL,
    UNCONDITIONAL,
    Truth,
)

if TYPE_CHECKING:
    from tests.oom_cases.allocator import Block

SIDE_STREAM = 94_382_711_808
# Advice against fragmentation.
UNFRAGMENT = (
    r"expandable",
    r"long-lived",
    r"allocate[^.]{0,60} (first|early|before)",
    r"\bpad\b|padd(ed|ing)|bucket|fixed (shape|length|size)",
)


def unusable(bench: Bench) -> tuple[int, int, int]:
    """Free bytes beside live blocks, the largest of them, and whole free segments."""
    free = bench.device.free_blocks()
    beside = [block.size for block in free if len(block.segment.blocks) > 1]
    whole = sum(block.size for block in free if len(block.segment.blocks) == 1)
    return sum(beside), max(beside, default=0), whole


def fragmented(seed: int) -> tuple[Bench, Truth]:
    """What stays was put between what went: no segment is whole, no gap is large."""
    bench = Bench("fragmented", seed)
    total = bench.device.total
    bench.choose_network(total * 0.06, layers=8)
    bench.weights = bench.load_model()
    script = bench.script
    number = bench.rng.randrange(14, 40)
    size = int(bench.device.free * 0.985 / number) // (2 * MiB) * 2 * MiB
    stays = bench.rng.uniform(0.22, 0.34)

    def program() -> None:
        warm = script.stack(script.user("aux"))
        first = [bench.alloc(size, warm) for _ in range(number)]
        for block in first:
            bench.delete(block, "aux")
        keep, work = (script.stack(script.user(site)) for site in ("keep", "loss"))
        bank, temporary = [], []
        for _ in range(number):
            bank.append(bench.alloc(int(size * stays), keep))
            temporary.append(bench.alloc(int(size * (0.97 - stays)), work))
        for block in temporary:
            bench.delete(block, "loss")
        bench.phase = "forward"
        wanted = int(size * bench.rng.uniform(0.85, 0.95))
        bench.alloc(wanted, script.stack(script.user("forward")))

    bench.run(program)
    return bench, Truth(
        ("fragmented",),
        must=(
            (r"fragment", r"scattered", r"no (single )?(free )?block", r"largest free"),
            UNFRAGMENT,
        ),
        must_not=(REALLY_FULL, OTHER_PROCESS),
        facts=bench.asked(),
    )


def fragmented_varying(seed: int) -> tuple[Bench, Truth]:
    """Shorter batches leave the ends of longer ones' segments, too small for the logits."""

    def make(share: float) -> Bench:
        bench = Bench("fragmented_varying", seed, flavour=("llama", "gpt")[seed % 2])
        longest_share = 0.6
        total = bench.device.total
        net = bench.choose_network(total * 0.05, layers=8)
        bench.weights = bench.load_model()
        longest = bench.tokens_for(total * longest_share)

        def program() -> None:
            for part in (0.3, 0.4, 1.0):
                now = int(longest * part) // 64 * 64
                bench.backward(bench.forward(now))
            now = int(longest * share) // 64 * 64
            bench.forward(now)
            beside, largest, whole = unusable(bench)
            while whole + bench.device.free > total * 0.05:
                # The second view of the batch, as contrastive losses have.
                bench.forward(now, "aux", layers=1)
                beside, largest, whole = unusable(bench)
            wanted = int((largest + bench.device.free + whole) * 1.1)
            bench.phase = "logits" if wanted * 1.3 < beside else "no"
            bench.alloc(wanted, net.head_stack(bench.script, "forward"))

        bench.run(program)
        return bench

    bench = first_that_dies(make, ("logits",), *fills(0.5, 0.95, 0.03))
    return bench, Truth(
        ("fragmented",),
        must=(
            (r"fragment", r"scattered", r"no (single )?(free )?block", r"largest free"),
            UNFRAGMENT,
        ),
        must_not=(REALLY_FULL, OTHER_PROCESS, *LEAK_WORDS),
        facts=bench.asked(),
    )


def pending(seed: int) -> tuple[Bench, Truth]:
    """A feeder's batches are freed, but their stream's events cannot pass in a capture."""
    bench = Bench("pending", seed)
    device, total = bench.device, bench.device.total
    bench.choose_network(total * 0.12, layers=8)
    bench.weights = bench.load_model()
    script = bench.script
    stream = SIDE_STREAM + 4096 * seed
    each = int(total * bench.rng.uniform(0.02, 0.04)) // 4096 * 4096
    frames = script.stack(script.user("prefetch"))
    captured = script.stack(
        script.lib(("torch/nn/modules/linear.py", 125, "forward")),
        script.user("capture"),
    )
    batches: list[Block] = []

    def program() -> None:
        for turn in range(6):
            batches.append(bench.alloc(each, frames, stream=stream))
            if turn > 1:
                old = batches.pop(0)
                device.delete(old, frames, used_on=0)
                device.finish(old)
        device.capturing = True
        bench.phase = "capture"
        while True:
            batches.append(bench.alloc(each, frames, stream=stream))
            device.delete(batches.pop(0), frames, used_on=0)
            for _ in range(3):
                bench.alloc(each // 24, captured, pool=(0, 1))

    bench.run(program)
    return bench, Truth(
        ("pending",),
        must=(
            (r"\bpending", r"await", r"not yet", r"waiting for"),
            (r"\bstream",),
            (
                r"record_stream",
                r"synchroni[sz]e",
                r"wait_stream|wait_event",
                r"prefetch",
                r"fewer",
                r"ahead",
            ),
        ),
        must_not=(REALLY_FULL, OTHER_PROCESS, *LEAK_WORDS),
        facts=bench.asked(),
    )


def other_process(seed: int) -> tuple[Bench, Truth]:
    """Somebody else's process has much of the GPU."""
    kind, names = "other_process", ("H100", "A100-40", "RTX 4090", "L40S")
    total = card_bytes(names[seed % 4])
    others = int(total * (0.42 + 0.09 * (seed % 4))) // KiB * KiB
    bench = Bench(kind, seed, cards=names, others=others)
    mine = total - others
    bench.choose_network(mine * 0.1, layers=8)
    bench.weights = bench.load_model()
    tokens = bench.tokens_for(mine * 0.22)

    def program() -> None:
        for _ in range(3):
            bench.train_step(tokens)
        for _ in range(4):
            bench.forward(tokens)

    bench.run(program)
    return bench, Truth(
        ("other", "full", "unsure"),
        must=(
            (
                r"other process",
                r"another process",
                r"outside",
                r"nvidia-smi",
                r"\bif (this|that|it|the)",
                r"--capacity",
            ),
        ),
        must_not=(UNCONDITIONAL, *LEAK_WORDS),
        facts=bench.asked(),
        capacity=total,
    )


def process_limit(seed: int) -> tuple[Bench, Truth]:
    """set_per_process_memory_fraction: the device has room, this process may not have it."""
    names = ("H100", "A100-40", "RTX 4090", "L40S")
    total = card_bytes(names[seed % 4])
    limit = int(total * (0.3 + 0.1 * (seed % 4)))
    bench = Bench("process_limit", seed, cards=names, limit=limit)
    bench.choose_network(limit * 0.1, layers=8)
    bench.weights = bench.load_model()
    tokens = bench.tokens_for(limit * 0.3)

    def program() -> None:
        bench.train_step(tokens)
        for _ in range(4):
            bench.forward(tokens)

    bench.run(program)
    return bench, Truth(
        # A pickle does not hold the fraction: only that there was room is known.
        ("unsure",),
        must=((r"memory[_ ]fraction", r"\blimit", r"\bcap\b"),),
        must_not=(REALLY_FULL, OTHER_PROCESS, *LEAK_WORDS),
        facts=bench.asked(),
        capacity=total,
    )


def fraction_in_settings(seed: int) -> tuple[Bench, Truth]:
    """per_process_memory_fraction among the allocator's settings, which a pickle holds."""
    names = ("H100", "A100-40", "RTX 4090", "L40S")
    total = card_bytes(names[seed % 4])
    fraction = (0.3, 0.45, 0.5, 0.8)[seed // 4 % 4 - seed % 4]
    limit = int(total * fraction)
    bench = Bench("fraction_in_settings", seed, cards=names, limit=limit)
    # The setting came with torch 2.10.
    bench.version = max(bench.version, (2, 10))
    settings = [f"per_process_memory_fraction:{fraction}", "max_split_size_mb:512"]
    bench.conf = ",".join(settings[:: 1 if seed % 2 else -1])
    bench.choose_network(limit * 0.1, layers=8)
    bench.weights = bench.load_model()
    tokens = bench.tokens_for(limit * 0.3)

    def program() -> None:
        bench.train_step(tokens)
        for _ in range(4):
            bench.forward(tokens)

    bench.run(program)
    share = rf"\b{100 * fraction:.0f}(\.0)? ?%"
    return bench, Truth(
        ("limit",),
        must=((share, rf"\b{limit / GiB:.1f} GiB"), (r"per_process_memory_fraction",)),
        must_not=(REALLY_FULL, OTHER_PROCESS, r"not recorded", *LEAK_WORDS),
        facts=bench.asked(),
        capacity=total if seed % 2 else None,
    )


def unknown_capacity(seed: int) -> tuple[Bench, Truth]:
    """A slice of a card, of a size that no card has; nobody says which."""
    total = int((9.61, 17.37, 28.9, 61.2)[seed % 4] * GiB) // KiB * KiB
    bench = Bench("unknown_capacity", seed, total=total)
    bench.choose_network(total * 0.08, layers=8)
    bench.weights = bench.load_model()
    tokens = bench.tokens_for(total * 0.5)

    def program() -> None:
        bench.train_step(tokens)
        bench.forward(tokens)
        bench.forward(tokens)

    bench.run(program)
    return bench, Truth(
        ("full", "unsure"),
        must=(HEDGES,),
        must_not=(
            UNCONDITIONAL,
            rf"{OTHER_PROCESS} (holds|held|has|had|took|uses|used)",
            *LEAK_WORDS,
        ),
        facts=bench.asked(),
    )
