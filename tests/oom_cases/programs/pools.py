"""Programs with memory pools: of an engine beside the training, of graphs, of the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oom_cases.allocator import GiB, MiB
from tests.oom_cases.bench import Bench
from tests.oom_cases.network import LINEAR
from tests.oom_cases.truth import OTHER_PROCESS, REALLY_FULL, Truth

if TYPE_CHECKING:
    from tests.oom_cases.allocator import Block, Frames
    from tests.oom_cases.stacks import Frame

USER_POOL = (0, 1)
FRAGMENTED = (r"fragment", r"scattered", r"no (single )?(free )?block", r"largest free")

# Where the engines of colocated trainers allocate, the innermost first.
ENGINES: tuple[tuple[Frame, ...], ...] = (
    (
        ("vllm/model_executor/layers/linear.py", 346, "create_weights"),
        ("vllm/device_allocator/cumem.py", 210, "use_memory_pool"),
        ("vllm/v1/worker/gpu_worker.py", 300, "load_model"),
        ("vllm/v1/engine/core.py", 92, "__init__"),
    ),
    (
        ("vllm/v1/worker/gpu_model_runner.py", 2410, "load_model"),
        ("vllm/v1/worker/gpu_worker.py", 300, "load_model"),
        ("verl/workers/rollout/vllm_rollout/vllm_rollout_spmd.py", 170, "__init__"),
        ("verl/workers/fsdp_workers.py", 640, "_build_rollout"),
    ),
    (
        ("vllm/model_executor/model_loader/utils.py", 64, "initialize_model"),
        ("vllm/device_allocator/cumem.py", 226, "use_memory_pool"),
        ("vllm/worker/worker.py", 182, "load_model"),
        ("trl/extras/vllm_client.py", 77, "init"),
    ),
    (
        ("sglang/srt/model_loader/loader.py", 512, "load_model"),
        ("torch_memory_saver/entrypoint.py", 48, "region"),
        ("sglang/srt/model_executor/model_runner.py", 688, "load_model"),
        ("sglang/srt/managers/scheduler.py", 401, "__init__"),
    ),
)
# Buffers that communication registers come from an allocator of the network's library.
BUFFERS: tuple[tuple[Frame, ...], ...] = (
    (
        (
            "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py",
            84,
            "allocate",
        ),
        (
            "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py",
            231,
            "foreach_all_gather",
        ),
    ),
    (
        ("megatron/core/nccl_allocator.py", 121, "__enter__"),
        ("megatron/core/distributed/param_and_grad_buffer.py", 640, "__init__"),
    ),
)


def scatter(bench: Bench, stays: float, share: float = 0.985) -> None:
    """Fill the device with segments of which what stays has a part, and ask for one more."""
    script, rng = bench.script, bench.rng
    number = rng.randrange(16, 36)
    size = int(bench.device.free * share / number) // (2 * MiB) * 2 * MiB
    keep, work = (script.stack(script.user(site)) for site in ("keep", "loss"))
    warm = [bench.alloc(size, work) for _ in range(number)]
    for block in warm:
        bench.delete(block, "loss")
    temporary = []
    for _ in range(number):
        bench.alloc(int(size * stays), keep)
        temporary.append(bench.alloc(int(size * (0.97 - stays)), work))
    for block in temporary:
        bench.delete(block, "loss")
    bench.phase = "forward"
    wanted = int(size * rng.uniform(0.82, 0.95))
    bench.alloc(wanted, script.stack(script.user("forward")))


def _pooled(bench: Bench, frames: Frames, nbytes: float, pieces: int) -> list[Block]:
    each = int(nbytes / pieces) // (2 * MiB) * 2 * MiB
    return [bench.alloc(each, frames, pool=USER_POOL) for _ in range(pieces)]


def _fragmented_beside(kind: str, seed: int, own: tuple[Frame, ...]) -> Bench:
    bench = Bench(kind, seed, cards=("H100", "H200", "A100-40", "H100"))
    total = bench.device.total
    script = bench.script
    bench.choose_network(total * 0.1, layers=8)
    bench.weights = bench.load_model()
    frames = script.stack(script.lib(*own), script.user("load"))
    stays = bench.rng.uniform(0.25, 0.36)

    def program() -> None:
        part = total * bench.rng.uniform(0.05, 0.16)
        _pooled(bench, frames, part, bench.rng.randrange(6, 20))
        scatter(bench, stays)

    bench.run(program)
    return bench


def colocated(seed: int) -> tuple[Bench, Truth]:
    """An engine for rollouts has its weights in a pool of its own allocator."""
    bench = _fragmented_beside("colocated", seed, ENGINES[seed % 4])
    return bench, Truth(
        ("fragmented",),
        must=(FRAGMENTED,),
        must_not=(REALLY_FULL, OTHER_PROCESS, r"expandable_segments"),
        facts=bench.asked(),
    )


def pluggable_allocator(seed: int) -> tuple[Bench, Truth]:
    """Buffers of communication lie in a MemPool over a pluggable allocator."""
    bench = _fragmented_beside("pluggable_allocator", seed, BUFFERS[seed % 2])
    return bench, Truth(
        ("fragmented",),
        must=(FRAGMENTED,),
        must_not=(REALLY_FULL, OTHER_PROCESS, r"expandable_segments"),
        facts=bench.asked(),
    )


def graphs_per_shape(seed: int) -> tuple[Bench, Truth]:
    """A graph is captured for each new length of the input, in a pool of its own."""
    bench = Bench("graphs_per_shape", seed)
    device, total = bench.device, bench.device.total
    bench.choose_network(total * 0.16, layers=8)
    bench.weights = bench.load_model()
    script, rng = bench.script, bench.rng
    frames = script.stack(script.modules(script.lib(*LINEAR)), script.user("capture"))
    number = rng.randrange(40, 135)
    share = total * 0.9 / number
    lengths = rng.sample(range(8, 8 + 3 * number), 2 * number)

    def program() -> None:
        with_step = bench.tokens_for(total * 0.04)
        longest = max(lengths)
        for graph, length in enumerate(lengths, 1):
            mean = share * (0.5 + length / longest)
            work = [
                bench.alloc(int(mean / 5), frames, pool=(graph, 0)) for _ in "abcde"
            ]
            for block in work[2:]:
                device.delete(block, frames)
            device.tick(60_000)
            kept = bench.forward(with_step, "eval_forward", keeps=False)
            for block in kept:
                bench.delete(block, "eval_forward")

    bench.run(program)
    return bench, Truth(
        ("pool",),
        must=(
            (r"CUDA graph", r"graphs?'? (private )?pools?", r"\bgraphs\b"),
            (r"shape|length|bucket|\bpad|fewer graphs|shar(e|ing)|same pool|one pool",),
        ),
        must_not=(
            r"\bleak",
            r"(kept|retained) (from|across|over)",
            r"\.item\(\)",
            r"\bdetach",
        ),
        facts=bench.asked(),
    )


def user_pool_cached(seed: int) -> tuple[Bench, Truth]:
    """A MemPool of the user caches much, of which nothing is live any more."""
    bench = Bench("user_pool_cached", seed, cards=("H100", "H200", "A100-40", "L40S"))
    device, total = bench.device, bench.device.total
    bench.choose_network(total * 0.1, layers=8)
    bench.weights = bench.load_model()
    script, rng = bench.script, bench.rng
    frames = script.stack(script.user("capture"))
    share = rng.uniform(0.4, 0.6)

    def program() -> None:
        staged = _pooled(bench, frames, total * share, rng.randrange(4, 24))
        for block in staged:
            device.delete(block, frames)
        tokens = bench.tokens_for(total * 0.14)
        for _ in range(5):
            bench.forward(tokens)

    bench.run(program)
    pooled = sum(s.size for s in device.segments if s.pool == USER_POOL) / GiB
    return bench, Truth(
        ("pool",),
        must=(
            (r"MemPool", r"\bpools?\b"),
            (r"cached", r"\bfree\b", r"(nothing|none)[^.]{0,30}live", r"no live"),
            (
                r"\bdel\b|delete|releas|drop",
                r"use_mem_pool|in(side)? (the|that|this|its) pool",
                r"use_on_oom",
            ),
        ),
        must_not=(
            r"\bleak",
            rf"\b{pooled:.1f} GiB (is |was |are )?live",
            OTHER_PROCESS,
        ),
        facts=bench.asked(),
    )
