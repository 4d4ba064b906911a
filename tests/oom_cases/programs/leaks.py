"""Programs that keep more with every round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oom_cases.bench import Bench
from tests.oom_cases.truth import OTHER_PROCESS, Truth, line

if TYPE_CHECKING:
    from tests.oom_cases.allocator import Block


def model_lines(bench: Bench) -> tuple[str, ...]:
    """Any line of the model's file."""
    name = bench.flavour.file.rsplit("/", 1)[-1].removesuffix(".py")
    return (rf"{name}\.py\b.{{0,20}}\d",)


def leak_losses(seed: int) -> tuple[Bench, Truth]:
    """`total = total + penalty` keeps the graph of a frozen network's features."""
    bench = Bench("leak_losses", seed)
    total = bench.device.total
    net = bench.choose_network(int(total * bench.rng.uniform(0.06, 0.1)), layers=8)
    bench.device.recording = bench.rng.random() < 0.5
    bench.weights = bench.load_model()
    bench.device.recording = True
    tokens = bench.tokens_for(total * bench.rng.uniform(0.1, 0.25))
    rounds = bench.rng.randrange(9, 24)
    layers = bench.rng.randrange(3, 7)
    kept_bytes = total * 0.5 / rounds
    aux = bench.tokens_for(kept_bytes, layers)
    kept: list[Block] = []

    def program() -> None:
        while True:
            kept.extend(bench.forward(aux, "aux", layers=layers, net=net))
            frames = bench.script.stack(bench.script.user("keep"))
            kept.append(bench.alloc(4, frames))
            bench.scratch = []
            bench.train_step(tokens)

    bench.run(program)
    where = (line(*bench.script.at("aux")), line(*bench.script.at("keep")))
    return bench, Truth(
        ("leak",),
        must=(
            (*where, *model_lines(bench)),
            (r"detach", r"\.item\(\)", r"\bgraph", r"no_grad"),
        ),
        must_not=(OTHER_PROCESS,),
        facts=bench.asked(),
    )


def leak_outputs(seed: int) -> tuple[Bench, Truth]:
    """`outputs.append(logits)` in an evaluation keeps every batch's result on the GPU."""
    bench = Bench("leak_outputs", seed, cards=("A100-40", "RTX 4090", "H100", "V100"))
    total = bench.device.total
    words = 8192 if bench.flavour.name == "vit" else None
    net = bench.choose_network(
        int(total * bench.rng.uniform(0.2, 0.4)), vocabulary=words
    )
    bench.device.recording = seed % 2 == 0
    bench.weights = bench.load_model()
    bench.device.recording = True
    rounds = bench.rng.randrange(18, 60)
    tokens = int(total * 0.55 / rounds / (net.vocabulary * 2)) // 8 * 8
    outputs = []

    def program() -> None:
        while True:
            hidden = bench.forward(
                max(64, tokens // 6), "eval_forward", layers=8, keeps=False
            )
            frames = net.head_stack(bench.script, "eval_forward")
            outputs.append(bench.alloc(tokens * net.vocabulary * 2, frames))
            for block in hidden:
                bench.delete(block, "eval_forward")
            bench.scratch = []
            bench.device.tick(60_000)

    bench.run(program)
    file = bench.flavour.file.rsplit("/", 1)[-1]
    where = (
        line(file, bench.flavour.head_line),
        line(*bench.script.at("eval_forward")),
        line(*bench.script.at("eval_keep")),
    )
    return bench, Truth(
        ("leak",),
        must=(
            where,
            (r"\bcpu\b", r"\bhost\b", r"detach", r"append", r"\blists?\b", r"\.item\("),
        ),
        must_not=(OTHER_PROCESS, r"zero_grad", r"gradient accumulation", r"optimizer"),
        facts=bench.asked(),
    )


def leak_cache(seed: int) -> tuple[Bench, Truth]:
    """A dictionary keeps one attention bias for each length that it has seen."""
    bench = Bench("leak_cache", seed)
    total = bench.device.total
    bench.choose_network(int(total * bench.rng.uniform(0.05, 0.09)), layers=8)
    bench.weights = bench.load_model()
    file, at = "attention_bias.py", bench.rng.randrange(20, 70)
    own = (bench.script.style.root + file, at, "bias_for_length")
    frames = bench.script.stack(
        bench.script.modules((own, (bench.net.file(bench.script), 150, "forward"))),
        bench.script.user("forward"),
    )
    cache = []
    tokens = bench.tokens_for(total * 0.22)
    rounds = bench.rng.randrange(14, 34)
    each = total * 0.5 / rounds
    lengths = []

    def program() -> None:
        for _ in range(400):
            length = bench.rng.randrange(512, 4096) // 8 * 8
            share = bench.rng.uniform(0.55, 1.0)
            if length not in lengths:
                lengths.append(length)
                nbytes = each * (0.4 + 1.2 * length / 4096)
                cache.append(bench.alloc(int(nbytes), frames))
            bench.train_step(max(64, int(tokens * share) // 64 * 64))

    bench.run(program)
    return bench, Truth(
        ("leak",),
        must=(
            (line(file, at),),
            (
                r"\bbound",
                r"\blimit",
                r"evict",
                r"\blru",
                r"\bcach(e|es|ing)\b",
                r"clear",
                r"dict",
            ),
        ),
        must_not=(OTHER_PROCESS, r"zero_grad"),
        facts=bench.asked(),
    )


def leak_without_marks(seed: int) -> tuple[Bench, Truth]:
    """A large leak under small steps: `history.append(hidden)`, and nothing marks a step."""
    bench = Bench("leak_without_marks", seed)
    bench.marks = False
    total = bench.device.total
    net = bench.choose_network(int(total * 0.04), layers=6)
    bench.weights = bench.load_model()
    rounds = bench.rng.randrange(24, 60)
    tokens = bench.tokens_for(total * bench.rng.uniform(0.012, 0.03))
    history = []

    def program() -> None:
        while True:
            frames = bench.script.stack(bench.script.user("keep"))
            history.append(bench.alloc(int(total * 0.8 / rounds), frames))
            kept = bench.forward(tokens, layers=net.layers)
            bench.backward(kept)
            bench.step()
            bench.device.tick(30_000)

    bench.run(program)
    return bench, Truth(
        ("leak",),
        must=(
            (line(*bench.script.at("keep")),),
            (r"detach", r"\.item\(", r"\bcpu\b", r"\bhost\b", r"\blists?\b", r"append"),
        ),
        must_not=(OTHER_PROCESS,),
        facts=bench.asked(),
    )
