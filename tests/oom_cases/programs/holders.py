"""Programs in which one thing that is easily overlooked holds most of the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oom_cases.allocator import MiB
from tests.oom_cases.bench import Bench
from tests.oom_cases.network import LINEAR
from tests.oom_cases.programs.no_room import SIDE_STREAM
from tests.oom_cases.truth import LEAK_WORDS, OTHER_PROCESS, Truth, line

if TYPE_CHECKING:
    from tests.oom_cases.allocator import Block

TRAINING_ADVICE = (r"zero_grad", r"optimi[sz]er", r"backward", r"gradient")


def graph_pool(seed: int) -> tuple[Bench, Truth]:
    """CUDA graphs for many batch sizes: their private pools keep what eager code lacks."""
    bench = Bench("graph_pool", seed)
    device, total = bench.device, bench.device.total
    net = bench.choose_network(total * 0.22, layers=8)
    bench.weights = bench.load_model()
    script = bench.script
    number = bench.rng.randrange(5, 11)
    share = total * 0.55 / number
    frames = script.stack(script.modules(script.lib(*LINEAR)), script.user("capture"))

    def program() -> None:
        for graph in range(number):
            pool = (0, graph + 1)
            work = [bench.alloc(int(share / 6), frames, pool=pool) for _ in range(6)]
            for block in work[1:]:
                device.delete(block, frames)
            device.tick(50_000)
        bench.forward(bench.tokens_for(total * 0.4), "eval_forward", layers=net.layers)

    bench.run(program)
    return bench, Truth(
        ("pool", "full", "fragmented"),
        must=(
            (
                r"CUDA graph",
                r"graphs?'? (private )?pools?",
                r"\bgraphs\b",
                r"private pool",
            ),
            (
                r"shar(e|ing) (one|a|the|their)",
                r"graph_pool_handle",
                r"fewer",
                r"\bpool=",
                r"same pool|one pool",
                r"captur",
            ),
        ),
        must_not=LEAK_WORDS,
        facts=bench.asked(),
    )


def kv_cache(seed: int) -> tuple[Bench, Truth]:
    """generate() with many sequences: keys and values grow with every token."""
    bench = Bench("kv_cache", seed, flavour="llama")
    total = bench.device.total
    net = bench.choose_network(total * bench.rng.uniform(0.2, 0.35), layers=8)
    bench.device.recording = seed % 2 == 0
    bench.weights = bench.load_model()
    bench.device.recording = True
    script = bench.script
    each = int(total * 0.0009) // 512 * 512
    prompt = bench.rng.randrange(16, 36)
    file = "transformers/cache_utils.py"
    modeling = net.file(script)
    head = script.lib(
        ("transformers/generation/utils.py", 2784, "_sample"),
        ("transformers/generation/utils.py", 2453, "generate"),
        ("torch/utils/_contextlib.py", 120, "decorate_context"),
    )
    stacks = {}
    for part, at in (("keys", 120), ("values", 121)):
        own = script.lib((file, at, "update"), (file, 776, "update"))
        forwards = tuple(((modeling, at, "forward"),) for at in (265, 309, 412, 477))
        stacks[part] = script.stack(
            own, script.modules(*forwards), head, script.user("generate")
        )
    cache: dict[tuple[int, str], Block] = {}

    def program() -> None:
        bench.phase = "generate"
        for length in range(prompt, 4000):
            for layer in range(net.layers):
                for part, frames in stacks.items():
                    new = bench.alloc(each * length // 8, frames)
                    old = cache.get((layer, part))
                    cache[layer, part] = new
                    if old is not None:
                        bench.device.delete(old, frames)
            logits = bench.alloc(24 * MiB, net.head_stack(script, "generate"))
            bench.delete(logits, "generate")

    bench.run(program)
    return bench, Truth(
        ("full", "leak"),
        must=(
            (r"\bKV\b", r"\bcach(e|es|ing)\b", r"keys? and values?"),
            (
                line("cache_utils.py", 120),
                line("cache_utils.py", 121),
                r"cache_utils\.py",
                line(*script.at("generate")),
            ),
            (
                r"max_new_tokens|max_length",
                r"fewer (sequences|tokens)",
                r"batch",
                r"static",
                r"offload",
                r"quanti",
                r"paged|sliding",
                r"short",
            ),
        ),
        must_not=(*TRAINING_ADVICE, r"detach", r"torch\.utils\.checkpoint"),
        facts=bench.asked(),
    )


def second_copy(seed: int) -> tuple[Bench, Truth]:
    """An average of the weights, or a reference model: the weights are there twice."""
    bench = Bench("second_copy", seed)
    total = bench.device.total
    net = bench.choose_network(total * bench.rng.uniform(0.3, 0.34))
    script = bench.script
    bench.weights = bench.load_model()
    deep = script.lib(
        ("torch/nn/parameter.py", 72, "__deepcopy__"),
    )
    library = script.style.packages.split("site-")[0].split("dist-")[0]
    copy = tuple(
        (library + "copy.py", at, name)
        for at, name in (
            (143, "deepcopy"),
            (221, "_deepcopy_dict"),
            (143, "deepcopy"),
            (259, "_reconstruct"),
        )
    )
    copied = seed % 2 == 0

    def program() -> None:
        if copied:
            frames = script.stack(deep, copy, script.user("copy"))
            bench.states = [bench.alloc(size, frames) for size in net.weights()]
        else:
            bench.load_model("copy")
            bench.states = [bench.alloc(512, script.optimizer("exp_avg"))]
        tokens = bench.tokens_for(total * 0.24)
        for _ in range(3):
            bench.backward(bench.forward(tokens))

    bench.run(program)
    return bench, Truth(
        ("full",),
        must=(
            (
                r"\bcop(y|ies)\b",
                r"twice",
                r"deepcopy",
                r"\bEMA\b",
                r"reference model",
                r"second model|another model|two models",
            ),
            (
                line(*script.at("copy")),
                line("copy.py", 143),
                line("parameter.py", 72),
            ),
        ),
        must_not=LEAK_WORDS,
        facts=bench.asked(),
    )


def cublas_workspaces(seed: int) -> tuple[Bench, Truth]:
    """A threaded server: cuBLAS keeps a workspace for each thread's handle and stream."""
    bench = Bench("cublas_workspaces", seed, cards=("H100", "H200"))
    total = bench.device.total
    net = bench.choose_network(total * bench.rng.uniform(0.25, 0.35))
    bench.weights = bench.load_model()
    script = bench.script
    op = net.flavour.mlp[0]
    frames = net.op_stack(script, op, "eval_forward", mlp=True)
    number = int(total * 0.48 / (32 * MiB))

    def program() -> None:
        bench.phase = "forward"
        for handle in range(number):
            stream = SIDE_STREAM + 2048 * (handle % 32)
            bench.alloc(33_554_432, frames, stream=stream)
            if handle % 8 == 0:
                work = bench.alloc(6 * MiB, frames, stream=stream)
                bench.delete(work, "eval_forward")
        bench.forward(bench.tokens_for(total * 0.5), "eval_forward")

    bench.run(program)
    return bench, Truth(
        ("full",),
        must=(
            (r"cublas",),
            (
                r"workspace",
                r"CUBLAS_WORKSPACE_CONFIG",
                r"fewer (streams|threads|handles)",
            ),
        ),
        must_not=LEAK_WORDS,
        facts=bench.asked(),
    )


def checkpoint_load(seed: int) -> tuple[Bench, Truth]:
    """torch.load(..., map_location="cuda") puts a checkpoint beside the model."""
    bench = Bench("checkpoint_load", seed)
    total = bench.device.total
    net = bench.choose_network(total * bench.rng.uniform(0.34, 0.44))
    script = bench.script
    bench.weights = bench.load_model()
    own = script.lib(
        ("torch/_utils.py", 105, "_to"),
        ("torch/storage.py", 291, "cuda"),
        ("torch/serialization.py", 610, "_deserialize"),
        ("torch/serialization.py", 701, "default_restore_location"),
        ("torch/serialization.py", 1931, "restore_location"),
        ("torch/serialization.py", 2070, "load_tensor"),
        ("torch/serialization.py", 2114, "persistent_load"),
        ("torch/serialization.py", 2136, "_load"),
        ("torch/serialization.py", 1529, "load"),
    )
    frames = script.stack(own, script.user("load"))

    def program() -> None:
        bench.phase = "load"
        loaded = []
        for _ in range(3):
            loaded += [bench.alloc(size, frames) for size in net.weights()]

    bench.run(program)
    return bench, Truth(
        ("full",),
        must=(
            (
                line(*script.at("load")),
                r"serialization\.py",
                r"torch\.load",
                r"checkpoint (that is|being) (read|loaded)|loading (a|the) checkpoint",
            ),
            (r"map_location", r"\bcpu\b", r"mmap", r"\bmeta\b", r"load_state_dict"),
        ),
        must_not=(*LEAK_WORDS, r"zero_grad", r"utils\.checkpoint", r"smaller batch"),
        facts=bench.asked(),
    )


def prefetch(seed: int) -> tuple[Bench, Truth]:
    """A thread copies batches to the GPU far ahead of the training that uses them."""
    bench = Bench("prefetch", seed)
    device, total = bench.device, bench.device.total
    bench.choose_network(total * 0.05, layers=8)
    bench.weights = bench.load_model()
    script = bench.script
    frames = script.stack(script.user("prefetch"))
    each = int(total * bench.rng.uniform(0.012, 0.024)) // 4096 * 4096
    stream = SIDE_STREAM + 512 * seed
    queue: list[Block] = []
    tokens = bench.tokens_for(total * 0.14)

    def program() -> None:
        while True:
            bench.phase = "feed"
            ahead = bench.rng.randrange(3, 6)
            queue.extend(bench.alloc(each, frames, stream=stream) for _ in range(ahead))
            bench.train_step(tokens)
            device.delete(queue.pop(0), script.stack(script.user("batch")))

    bench.run(program)
    file = script.at("prefetch")
    return bench, Truth(
        ("full", "leak"),
        must=(
            (line(*file),),
            (
                r"prefetch",
                r"\bqueue",
                r"\bahead",
                r"fewer batches",
                r"data ?loader",
                r"\bload(s|ed|ing)? (of )?batches",
            ),
        ),
        must_not=(r"zero_grad", OTHER_PROCESS),
        facts=bench.asked(),
    )
