"""Programs that need more than the GPU has, and leak nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oom_cases.bench import Bench
from tests.oom_cases.truth import LEAK_WORDS, REALLY_FULL, SMALLER_STEP, Truth, line

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.oom_cases.allocator import Block


def first_that_dies(
    make: Callable[[float], Bench], phases: tuple[str, ...], *fills: float
) -> Bench:
    """Fill the device a little more until the program dies where it should."""
    died = []
    for fill in fills:
        try:
            bench = make(fill)
        except AssertionError:
            died.append("nowhere")
            continue
        if bench.phase in phases:
            return bench
        died.append(bench.phase)
    raise AssertionError(f"it died in {died}, not in {phases}")


def fills(first: float, last: float, step: float = 0.02) -> tuple[float, ...]:
    """Shares of the device to try."""
    return tuple(first + step * n for n in range(int((last - first) / step) + 1))


def steady_constant(seed: int) -> tuple[Bench, Truth]:
    """Equal micro-batches; the optimizer's states leave no room for the next ones."""

    def make(fill: float) -> Bench:
        bench = Bench("steady_constant", seed, cards=("H100", "RTX 4090", "L40S"))
        total = bench.device.total
        bench.choose_network(total * 0.08, layers=8)
        bench.weights = bench.load_model()
        tokens = bench.tokens_for(total * fill)
        micro = bench.rng.randrange(6, 12)

        def program() -> None:
            for _ in range(4):
                for _ in range(micro):
                    bench.backward(bench.forward(tokens) + bench.loss(tokens))
                    bench.device.tick(90_000)
                bench.step(4)
                bench.zero_grad()

        bench.run(program)
        return bench

    bench = first_that_dies(make, ("forward", "backward"), *fills(0.5, 0.7))
    return bench, Truth(
        ("full",),
        must=(SMALLER_STEP,),
        must_not=LEAK_WORDS,
        facts=bench.asked(),
    )


def steady_varying(seed: int) -> tuple[Bench, Truth]:
    """Lengths vary, and one batch is much longer than all before it."""
    bench = Bench("steady_varying", seed)
    total = bench.device.total
    bench.choose_network(total * 0.045, layers=8)
    bench.weights = bench.load_model()
    longest = bench.tokens_for(total * 0.42)
    steps = bench.rng.randrange(12, 26)

    def program() -> None:
        for _ in range(steps):
            share = bench.rng.uniform(0.35, 1.0)
            bench.train_step(max(64, int(longest * share) // 64 * 64))
        bench.train_step(int(longest * bench.rng.uniform(2.0, 2.4)) // 64 * 64)

    bench.run(program)
    return bench, Truth(
        ("full",),
        must=((r"\blong", r"length", r"\bpad", r"bucket", r"token", r"larger batch"),),
        must_not=LEAK_WORDS,
        facts=bench.asked(),
    )


def optimizer_first(seed: int) -> tuple[Bench, Truth]:
    """The first optimizer.step makes AdamW's states, and they do not fit."""
    bench = Bench(
        "optimizer_first", seed, cards=("RTX 4090", "H100", "A100-40", "V100")
    )
    total = bench.device.total
    bench.choose_network(total * bench.rng.uniform(0.26, 0.3), bytes_per_weight=4)
    bench.weights = bench.load_model()
    tokens = bench.tokens_for(total * 0.2)
    bench.run(lambda: bench.train_step(tokens))
    if bench.phase != "optimizer":
        raise AssertionError(f"it died in {bench.phase}")
    return bench, Truth(
        ("full",),
        must=(
            (r"optimi[sz]er", r"\bAdam"),
            (
                r"8[- ]?bit",
                r"\bfused\b",
                r"\bforeach\b",
                r"offload",
                r"shard|ZeRO|FSDP",
                r"Adafactor|Lion|Muon|SGD",
                r"bf16|bfloat16|half[- ]precision",
            ),
        ),
        must_not=(*LEAK_WORDS, r"zero_grad", r"set_to_none", r"no_grad"),
        facts=bench.asked(),
    )


def backward_first(seed: int) -> tuple[Bench, Truth]:
    """Forward fits, the gradients that backward adds do not."""

    def make(fill: float) -> Bench:
        bench = Bench("backward_first", seed, flavour=("llama", "gpt")[seed % 2])
        total = bench.device.total
        bench.choose_network(total * 0.1, vocabulary=128256)
        bench.weights = bench.load_model()
        tokens = bench.tokens_for(total * fill)
        bench.run(lambda: bench.train_step(tokens))
        return bench

    bench = first_that_dies(make, ("backward",), *fills(0.3, 0.9, 0.01))
    return bench, Truth(
        ("full",),
        must=(SMALLER_STEP,),
        must_not=(*LEAK_WORDS, r"\bno_grad", r"inference_mode"),
        facts=bench.asked(),
    )


def logits(seed: int) -> tuple[Bench, Truth]:
    """A large vocabulary: logits, their float32 copy and the loss are the peak."""
    bench = Bench("logits", seed, flavour=("llama", "gpt")[seed % 2])
    total = bench.device.total
    words = bench.rng.choice((128256, 151936, 256000))
    net = bench.choose_network(total * 0.07, vocabulary=words, layers=8)
    bench.weights = bench.load_model()
    tokens = int(total * bench.rng.uniform(0.98, 1.1) / (10 * words)) // 64 * 64
    script = bench.script

    def program() -> None:
        for share in (0.4, 0.45, 1.0):
            now = int(tokens * share) // 64 * 64
            kept = bench.forward(now, layers=2)
            kept += bench.loss(now)
            kept.append(
                bench.alloc(now * words * 4, net.float_stack(script, "forward"))
            )
            inner = script.lib(("torch/nn/functional.py", 3494, "cross_entropy"))
            frames = script.stack(inner, script.user("loss"))
            kept.append(bench.alloc(now * words * 4, frames))
            bench.scratch = kept
            bench.backward(kept)
            bench.step()
            bench.zero_grad()

    bench.run(program)
    file = bench.flavour.file.rsplit("/", 1)[-1]
    return bench, Truth(
        ("full",),
        must=(
            (
                r"logits",
                r"vocab",
                r"cross.?entropy",
                line(file, bench.flavour.head_line),
                line(file, bench.flavour.float_line),
            ),
            (
                r"chunk",
                r"fused (linear|cross|loss|kernel)",
                r"liger|cut[- ]cross",
                r"in parts",
                r"fewer (positions|tokens)",
                r"only (where|for|the)[^.]{0,40}(needed|position|last|label)",
                r"bf16|bfloat16|half[- ]precision|float32 copy",
            ),
        ),
        must_not=LEAK_WORDS,
        facts=bench.asked(),
    )


def giant(seed: int) -> tuple[Bench, Truth]:
    """One tensor alone needs more than the whole card: scores S x S, or [N] - [N, 1]."""
    bench = Bench("giant", seed, flavour=("gpt", "llama")[seed % 2])
    total = bench.device.total
    net = bench.choose_network(total * 0.06, layers=8)
    bench.weights = bench.load_model()
    tokens = bench.tokens_for(total * 0.15)
    script = bench.script
    attention = seed % 2 == 0
    factor = bench.rng.uniform(1.6, 3.4)
    file = bench.flavour.file.rsplit("/", 1)[-1]
    if attention:
        own = (net.file(script), 73, "forward")
        block = (net.file(script), bench.flavour.block_line, "forward")
        frames = script.stack(script.modules((own,), (block,)), script.user("forward"))
        where = (line(file, 73), line(*script.at("forward")))
    else:
        inner = script.lib(("torch/_tensor.py", 39, "wrapped"))
        frames = script.stack(inner, script.user("loss"))
        where = (line(*script.at("loss")),)

    def program() -> None:
        for _ in range(3):
            bench.train_step(tokens)
        kept = bench.forward(tokens, layers=1 if attention else None)
        bench.scratch = kept
        bench.alloc(int(total * factor) // 4096 * 4096, frames)

    bench.run(program)
    return bench, Truth(
        ("giant",),
        must=(
            where,
            (
                r"shape",
                r"broadcast",
                r"quadratic",
                r"flash|sdpa|scaled_dot",
                r"\bsizes? of (the|this|that) (tensor|request)",
                r"dimension",
                r"chunk|in parts|in pieces|split",
            ),
        ),
        must_not=(*LEAK_WORDS, REALLY_FULL, r"expandable_segments"),
        facts=bench.asked(),
    )


def eval_with_graph(seed: int) -> tuple[Bench, Truth]:
    """An evaluation without no_grad keeps activations for a backward that never comes."""
    bench = Bench("eval_with_graph", seed)
    total = bench.device.total
    bench.choose_network(total * 0.05, layers=12)
    bench.weights = bench.load_model()
    tokens = bench.tokens_for(total * 0.3)
    held: list[Block] = []

    def program() -> None:
        for _ in range(4):
            bench.train_step(tokens)
        while True:
            kept = bench.forward(int(tokens * 2.6), "eval_forward")
            for block in held:
                bench.delete(block, "eval_forward")
            held[:] = kept

    bench.run(program)
    return bench, Truth(
        ("full",),
        must=((r"no_grad", r"inference_mode"),),
        must_not=(*LEAK_WORDS, r"zero_grad"),
        facts=bench.asked(),
    )
