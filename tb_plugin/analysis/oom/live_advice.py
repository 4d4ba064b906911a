"""Advice that makes less live: for the largest holders first, by their names.

Every setting is one that torch documents (notes/cuda, torch.utils.checkpoint,
torch.distributed.fsdp, Optimizer.zero_grad).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from memboard.collector.format.memory import CATEGORIES, FOLDS_INTO, GRADIENTS
from memboard.collector.format.sizes import agreeing, counted
from memboard.tb_plugin.analysis.findings.conditions import advice_of
from memboard.tb_plugin.analysis.findings.text import (
    at_lines,
    lines_text,
    share_text,
    size_text,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from memboard.tb_plugin.analysis.oom.case import Case
    from memboard.tb_plugin.analysis.oom.holders import Holder, HoldingKind
    from memboard.tb_plugin.api.findings import Advice

ACTIVATIONS: Final = 0.25
OPTIMIZER: Final = 0.15
GRADS: Final = 0.1
"""Shares of what is live from which a category is worth advice."""

POOLS: Final = ("graph_pools", "program_pools")
"""Kinds of holdings that are private memory pools."""

LARGEST: Final = 0.2
"""Of what is live: a line that holds as much is named."""

_MAX_LINES: Final = 2


def live_advice(case: Case) -> Iterator[Advice]:
    """Less of what is live: what holds most first, and always the line that does."""
    advice = [*holding_advice(case), *_by_category(case)]
    top = next((holder for holder in case.holders if holder.label), None)
    growth = case.facts.growth
    told = " ".join(
        [item.text for item in advice] + [*(growth.lines if growth else ())]
    )
    if top is not None and top.share >= LARGEST and top.label not in told:
        line = advice_of(
            f"Start with the largest holder: {top.label} holds"
            f" {size_text(top.num_bytes)}, {share_text(top.share)} of live memory.",
            top.num_bytes,
            "held",
        )
        advice.append(line)
    yield from sorted(advice, key=lambda item: -(item.gain or 0))


def holding_advice(
    case: Case, kinds: Collection[HoldingKind] | None = None
) -> Iterator[Advice]:
    """For each kind of thing that holds much, the largest first."""
    for holding in case.holdings:
        if holding.kind == "no_backward" and not case.trains:
            continue  # no graph is kept that could be left out
        if kinds is None or holding.kind in kinds:
            shares = holding.num > 1 or case.facts.is_of_pool
            is_large = holding.num_bytes > LARGE_WORKSPACE * holding.num
            is_large &= case.setup.is_rocm is not True
            text = _HOLDINGS[holding.kind].format(
                size=size_text(holding.num_bytes),
                keep=agreeing(holding.num, "keeps", "keep"),
                wait=agreeing(holding.num, "waits", "wait"),
                num=counted(holding.num, _COUNTED.get(holding.kind, "block")),
                at=at_lines(holding.lines),
                free=size_text(holding.free_bytes),
                share=_SHARE.get(holding.kind, "") if shares else "",
                smaller=_SMALLER if is_large else "",
            )
            because = "private_pools" if holding.kind in POOLS else "held"
            yield advice_of(text, holding.num_bytes, because)


LARGE_WORKSPACE: Final = 9 << 20
"""Mean from which on some are larger than those of :4096:2:16:8, 8 MiB and a little more."""
_SMALLER: Final = ", or make them smaller with CUBLAS_WORKSPACE_CONFIG=:4096:2"

_SHARE: Final[dict[HoldingKind, str]] = {
    "graph_pools": " Let graphs share one pool (torch.cuda.graph(..., pool=...)).",
    "program_pools": (
        " Where CUDA graphs use them, let these share one pool, capture fewer sizes and the"
        " largest first."
    ),
}
"""Where there is more than one pool, the request's own among them."""

_COUNTED: Final[dict[HoldingKind, str]] = {
    "graph_pools": "pool",
    "program_pools": "pool",
    "no_backward": "forward pass",
}
"""What the holdings of a kind are, other than blocks."""

_HOLDINGS: Final[dict[HoldingKind, str]] = {
    "graph_pools": (
        "Private memory pools of CUDA graphs reserve {size} in {num}{at}, {free} of"
        " it free, and nothing else may use it.{share} Capture fewer sizes (pad inputs to a"
        " few lengths) and the largest first, and delete graphs that are no longer replayed."
    ),
    "program_pools": (
        "Memory pools that the program made reserve {size} in {num}{at}, {free} of"
        " it free. Where a torch.cuda.MemPool is no longer needed, drop the last reference"
        " to it and call torch.cuda.empty_cache(); where torch has use_on_oom, that lets"
        " other requests use what is free in it.{share}"
    ),
    "kv_cache": (
        "The KV cache holds {size}{at}: reserve less of it (fewer or shorter sequences, paged"
        " blocks; in vLLM, gpu_memory_utilization), store it in fp8 or int8 where that is"
        " possible, or drop the caches of finished sequences."
    ),
    "model_copy": (
        "A second copy of the model holds {size}{at} (averaged weights, a teacher, a"
        " saved state): move it to the host or to a smaller data type, share or shard"
        " it, or delete it after use."
    ),
    "checkpoint": (
        "A loaded checkpoint is still on the device, {size}{at}: load it to the host"
        ' (torch.load: map_location="cpu" or mmap=True; safetensors: device="cpu") and delete'
        " it after load_state_dict."
    ),
    "no_backward": (
        "No backward follows: {num}{at} {keep} {size} for gradients. Run"
        " evaluation and generation under torch.inference_mode() or torch.no_grad(),"
        " and store outputs detached or on the host."
    ),
    "vocabulary": (
        "The loss over the vocabulary holds {size}{at}, in addition to the logits"
        " themselves:"
        " compute logits and loss in chunks of positions (or by a fused linear cross"
        " entropy), keep logits in bf16 instead of a float32 copy, or take a smaller"
        " batch."
    ),
    "prefetched": (
        "Batches are prefetched: {num} of {size}{at} {wait} on the device to"
        " be used. Limit the prefetching: use a queue of two or three batches that"
        " blocks the loader when it is full."
    ),
    "workspaces": (
        "cuBLAS workspaces hold {size} in {num}{at}, inferred from their size"
        " where stacks do not name them: one for each handle and stream. Use fewer"
        " streams and graph captures{smaller}."
    ),
}


def _by_category(case: Case) -> Iterator[Advice]:
    live = case.live_bytes or 0
    if not live:
        return
    evaluates = any(holding.kind == "no_backward" for holding in case.holdings)
    if not case.trains:
        return
    activations = case.by_category.get("activation", 0)
    in_optimizer = case.asked_in == "optimizer"
    if activations >= ACTIVATIONS * live and not evaluates and not in_optimizer:
        # The gain is less than they hold by an amount that is not known.
        recompute = (
            "Recompute activations in backward instead of storing them"
            " (torch.utils.checkpoint.checkpoint, use_reentrant=False) around"
        )
        if case.setup.recomputes:
            recompute = (
                "Activations are recomputed already (torch.utils.checkpoint is in the"
                " stacks). Do so around more of"
            )
        yield advice_of(
            f"{recompute} the layers that hold the most{_lines(case, 'activation')}: of the"
            f" {size_text(activations)} that they hold, the inputs of each layer and all"
            " of one layer have to stay.",
            None,
            "held",
        )
    optimizer = case.by_category.get("optimizer", 0)
    if in_optimizer:
        yield from _in_optimizer(case, optimizer)
    elif optimizer >= OPTIMIZER * live:
        yield from _states(case, optimizer)
    grads = sum(case.by_category.get(category, 0) for category in GRADIENTS)
    # Backward makes gradients, and the optimizer needs them.
    if grads >= GRADS * live and case.asked_in not in ("backward", "optimizer"):
        yield advice_of(
            "Gradients are live outside backward. Unless they are accumulated over several"
            " batches, zero_grad(set_to_none=True) right after the optimizer's step frees"
            " them.",
            grads,
            "held",
        )


def _in_optimizer(case: Case, states: int) -> Iterator[Advice]:
    """The step itself had no room: it needs the gradients, and makes states or copies."""
    asked = case.facts.requested_bytes
    if not any(_ONE_BY_ONE.search(frame) for frame in case.stack):
        yield advice_of(
            "The optimizer's step ran out of memory. If it updates all parameters at once"
            " (foreach, the default on CUDA), it makes temporary copies as large as the"
            " parameters: use fused=True, or foreach=False.",
            None if asked is None else asked,
            "requested",
        )
    yield from _states(case, states)


_ONE_BY_ONE: Final = re.compile(r"\b_(single_tensor|fused)_\w+|bitsandbytes|8bit")
"""Frames of optimizers that make no copies of all parameters at once."""


def _states(case: Case, num_bytes: int) -> Iterator[Advice]:
    size = num_bytes or None
    shard = "shard it (fully_shard, or ZeroRedundancyOptimizer)"
    if case.world_size > 1:
        yield advice_of(
            f"If every rank holds the whole optimizer state, {shard}.",
            size,
            "held",
        )
    more = "" if case.world_size > 1 else f"; with more than one GPU, {shard}"
    store = "If that is not done yet, store"
    if case.setup.has_small_states is not None:
        store = "Store"
    ways = "in 8 bits, page it, or offload it to the host (bitsandbytes'"
    ways += " AdamW8bit and PagedAdamW8bit, DeepSpeed's offload)"
    if case.setup.has_small_states:
        ways = "paged, or offload it to the host (bitsandbytes' PagedAdamW8bit)"
    yield advice_of(
        f"{store} the optimizer's state {ways}{more}.",
        size,
        "held",
    )


def _lines(case: Case, category: str) -> str:
    """The lines that hold most of a category."""
    code = CATEGORIES.index(category)
    labels = [
        holder.label
        for holder in case.holders
        if holder.label and holder.category == code
    ]
    return f": {lines_text(labels[:_MAX_LINES])}" if labels else ""


def category_of(holder: Holder) -> str | None:
    """What most of a line's bytes are, as pages colour it; None where it is not known."""
    return FOLDS_INTO[CATEGORIES[holder.category]] if holder.category >= 0 else None
