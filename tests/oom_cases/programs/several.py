"""Programs with several errors, several GPUs, or no history at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oom_cases.allocator import OutOfMemoryError
from tests.oom_cases.bench import Bench
from tests.oom_cases.truth import (
    LEAK_WORDS,
    OTHER_PROCESS,
    REALLY_FULL,
    SMALLER_STEP,
    Truth,
    line,
)

if TYPE_CHECKING:
    from tests.oom_cases.allocator import Block


def retry(seed: int) -> tuple[Bench, Truth]:
    """The script catches one error and halves the batch; a later error ends it."""
    bench = Bench("retry", seed)
    # The ring must not lose the first error.
    bench.ring_share = None
    total = bench.device.total
    in_step = seed % 2 == 0
    bench.choose_network(total * (0.28 if in_step else 0.07), bytes_per_weight=4)
    bench.weights = bench.load_model()
    tokens = bench.tokens_for(total * 1.1)

    def program() -> None:
        try:
            bench.forward(tokens)
        except OutOfMemoryError:
            bench.device.tick(20_000)
            for block in bench.scratch:
                bench.delete(block)
            bench.device.empty_cache()
        if in_step:
            bench.train_step(tokens // 4)
        else:
            for _ in range(3):
                bench.train_step(tokens // 4)
            bench.forward(tokens, "eval_forward")

    bench.run(program)
    return bench, Truth(
        ("full",),
        must=((r"optimi[sz]er", r"\bAdam"),)
        if in_step
        else ((r"no_grad", r"inference_mode"),),
        must_not=(*LEAK_WORDS, *((r"zero_grad",) if in_step else ())),
        facts=bench.asked(),
    )


def accumulate_unsharded(seed: int) -> tuple[Bench, Truth]:
    """FSDP accumulates without synchronising: whole gradients in float32 on each rank."""
    bench = Bench("accumulate_unsharded", seed)
    total = bench.device.total
    net = bench.choose_network(total * 0.36, layers=16)
    script = bench.script
    module = "torch/distributed/fsdp/_fully_shard/"
    shard = script.stack(
        script.lib((module + "_fsdp_param.py", 318, "_init_sharded_param")),
        script.user("move"),
    )
    at = 806
    hook = script.lib(
        (module + "_fsdp_param.py", at, "to_accumulated_grad_if_needed"),
        (module + "_fsdp_param_group.py", 471, "post_backward"),
        (module + "_fsdp_state.py", 316, "_root_post_backward_final_callback"),
    )
    accumulated = script.on_autograd_thread(hook)
    engine = script.on_autograd_thread()
    gathered = script.stack(
        script.lib(
            (module + "_fsdp_collectives.py", 210, "foreach_all_gather"),
            (module + "_fsdp_param_group.py", 341, "unshard"),
            (module + "_fsdp_state.py", 252, "_pre_forward"),
        ),
        script.user("forward"),
    )
    sizes = net.weights()
    for size in sizes:
        bench.alloc(size // 8, shard)
    tokens = bench.tokens_for(total * 0.34)

    def program() -> None:
        gradients: dict[int, Block] = {}
        for _ in range(4):
            whole = [bench.alloc(size, gathered) for size in sizes[:9]]
            for block in whole:
                bench.delete(block)
            kept = bench.forward(tokens)
            bench.phase = "backward"
            each = len(kept) / len(sizes)
            for index, size in reversed(list(enumerate(sizes))):
                temporary = bench.alloc(size, engine)
                if index not in gradients:
                    gradients[index] = bench.alloc(size * 2, accumulated)
                bench.device.delete(temporary, engine)
                while len(kept) > each * index:
                    bench.device.delete(kept.pop(), engine)

    bench.run(program)
    return bench, Truth(
        ("full",),
        must=(
            (r"gradient", r"\bgrads?\b"),
            (
                line("_fsdp_param.py", at),
                r"to_accumulated_grad",
                r"no_sync",
                r"set_requires_gradient_sync",
                r"unsharded",
                r"without (sync|reduc)",
            ),
        ),
        must_not=(*LEAK_WORDS, r"\bno_grad"),
        facts=bench.asked(),
    )


def one_of_several(seed: int) -> tuple[Bench, Truth]:
    """A pipeline over several GPUs in one process: one stage holds much more."""
    number = (2, 4, 3, 4)[seed % 4]
    bench = Bench("one_of_several", seed, num_devices=number)
    heavy = bench.rng.randrange(1, number)
    total = bench.device.total
    bench.choose_network(total * 0.12, layers=8)
    for device in bench.devices:
        bench.device = device
        bench.load_model()
    tokens = bench.tokens_for(total * 0.11)
    kept: dict[int, list[Block]] = {device.index: [] for device in bench.devices}

    def program() -> None:
        for _ in range(12):
            for device in bench.devices:
                bench.device = device
                share = 1.0 if device.index == heavy else 0.45
                now = int(tokens * share) // 64 * 64
                kept[device.index] += bench.forward(now)

    bench.run(program)
    if bench.device.index != heavy:
        raise AssertionError("another device failed")
    return bench, Truth(
        ("full",),
        must=(SMALLER_STEP,),
        # Activations of micro-batches do add up, so growth within the step may be said.
        must_not=(r"\bleak", OTHER_PROCESS),
        facts=bench.asked(),
    )


def no_history(seed: int) -> tuple[Bench, Truth]:
    """Dumped by a script that never recorded events; half of them keep blocks' stacks."""
    bench = Bench("no_history", seed)
    has_stacks = seed % 2 == 0
    bench.device.keeps_frames = has_stacks
    bench.context = "all" if has_stacks else ""
    total = bench.device.total
    bench.choose_network(total * 0.3, layers=8)
    bench.weights = bench.load_model()
    bench.marks = False
    bench.run(lambda: bench.train_step(bench.tokens_for(total * 0.8)))
    for device in bench.devices:
        device.events.clear()
    where = (
        line(*bench.script.at("move")),
        r"module\.py:1355|convert",
        bench.flavour.file.rsplit("/", 1)[-1].replace(".", r"\."),
    )
    return bench, Truth(
        ("none", "unsure"),
        must=(
            (r"histor", r"_record_memory_history", r"\bevents?\b"),
            *((where,) if has_stacks else ()),
        ),
        must_not=(REALLY_FULL, *LEAK_WORDS),
    )
