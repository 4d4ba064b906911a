"""What to try, each piece only where the evidence calls for it.

Every setting is one that torch documents (notes/cuda, torch.utils.checkpoint,
torch.distributed.fsdp, Optimizer.zero_grad). The bytes are what is at stake at most, not
a promise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tb_plugin import api
from tb_plugin.analysis.verdict import above_peers_bytes, excess_non_torch_bytes
from tb_plugin.views.verdict_words import size_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tb_plugin.analysis.verdict import Cause
    from tb_plugin.views.verdict_case import Case

MAX_ADVICE: Final = 6

EXPANDABLE: Final = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"

ACTIVATIONS: Final = 0.25
OPTIMIZER: Final = 0.15
GRADS: Final = 0.1
"""Shares of what is live from which a category is worth advice."""


def advice_of(case: Case) -> tuple[api.VerdictAdvice, ...]:
    """What to try: for the cause first, then for what holds beside it."""
    found = [_limit(case)] if case.facts.is_limited else []
    for cause in (case.verdict.cause, *case.verdict.also):
        found += _FOR[cause](case)
    if case.verdict.cause not in ("really_full", "unsure") and _is_short(case):
        found += _live(case)
    distinct = {(one.text, one.setting): one for one in found}
    return tuple(distinct.values())[:MAX_ADVICE]


def _is_short(case: Case) -> bool:
    """Less live memory would have helped as well."""
    return case.verdict.cause in ("growth", "imbalance", "non_torch")


def _advice(
    text: str, num_bytes: float | None, because: tuple[str, ...], setting: str = ""
) -> api.VerdictAdvice:
    return api.VerdictAdvice(
        text=text,
        setting=setting,
        bytes=None if num_bytes is None else float(num_bytes),
        because=because,
    )


def _limit(case: Case) -> api.VerdictAdvice:
    return _advice(
        "The device had room: raise the limit on this process"
        " (torch.cuda.set_per_process_memory_fraction), or leave it away.",
        case.facts.device_free_bytes,
        ("device_free", "limit"),
    )


def _fragmented(case: Case) -> Iterator[api.VerdictAdvice]:
    free = case.facts.free
    size = None if free is None else free.num_bytes
    because = ("unused",) if free is None else ("free_blocks", "largest_free")
    if case.expandable is not True:
        yield _advice(
            "Let segments grow and shrink by pages, so that what is free can be put"
            " together. Set it before the process starts.",
            size,
            because,
            EXPANDABLE,
        )
        return
    yield _advice(
        "Segments are expandable already: what lives long lies between what was freed."
        " Allocate what stays before what comes and goes, and keep sizes from varying"
        " (pad batches to a few lengths).",
        size,
        because,
    )


def _growth(case: Case) -> Iterator[api.VerdictAdvice]:
    growth = case.facts.growth
    lines = "" if growth is None else ", ".join(growth.lines)
    where = f" at {lines}" if lines else ""
    yield _advice(
        f"Find what keeps memory from step to step{where}: keep numbers (.item()) or"
        " detached copies on the host, not tensors with their graph.",
        None if growth is None else growth.num_bytes,
        ("growth", "growth_per_round"),
    )


def _single_giant(case: Case) -> Iterator[api.VerdictAdvice]:
    facts = case.facts
    beyond = (facts.requested_bytes or 0) - (facts.largest_before_bytes or 0)
    where = f" at {case.asked_at}" if case.asked_at else ""
    yield _advice(
        f"Make this one request smaller{where}: do it in chunks, for fewer elements at"
        " once, or in a smaller data type.",
        beyond,
        ("requested", "largest_before"),
    )


def _imbalance(case: Case) -> Iterator[api.VerdictAdvice]:
    yield _advice(
        "Even out what the ranks hold: equal batches, sequence lengths and shards."
        " Compare this rank with another one line by line.",
        above_peers_bytes(case.facts),
        ("above_peers", "median_peer"),
    )


def _non_torch(case: Case) -> Iterator[api.VerdictAdvice]:
    yield _advice(
        "See what else uses the device (nvidia-smi lists its processes): another job,"
        " other ranks that were not given a device of their own, libraries that"
        " allocate by themselves.",
        excess_non_torch_bytes(case.facts),
        ("non_torch", "lost_room"),
    )


def _fitting(case: Case) -> Iterator[api.VerdictAdvice]:
    elsewhere = case.facts.elsewhere
    if elsewhere is None:
        return
    size, because = elsewhere.largest_bytes, ("elsewhere", "requested")
    if elsewhere.place == "pool":
        yield _advice(
            "A private memory pool keeps it, e.g. that of a CUDA graph: let graphs"
            " share one pool (torch.cuda.graph(..., pool=...)), or drop those that"
            " are not used any more.",
            size,
            because,
        )
        return
    if elsewhere.place == "split":
        yield _advice(
            "max_split_size_mb keeps large blocks whole for large requests: raise it"
            " above this request, or leave it away.",
            size,
            because,
        )
        return
    if case.expandable is not True:
        yield _advice(
            "With expandable segments, free pages go back to the device whatever"
            " stream they are of. Set it before the process starts.",
            size,
            because,
            EXPANDABLE,
        )
    yield _advice(
        "Memory of one stream does not serve another: allocate where it is used, or"
        " free it and call torch.cuda.empty_cache() before the other stream needs it.",
        size,
        because,
    )


def _live(case: Case) -> Iterator[api.VerdictAdvice]:
    """Less of what is live, by what it is."""
    live = case.live_bytes or 0
    activations = case.by_category.get("activation", 0)
    optimizer = case.by_category.get("optimizer", 0)
    grads = case.by_category.get("grad", 0)
    if live and activations >= ACTIVATIONS * live:
        yield _advice(
            "Compute activations again in backward instead of keeping them"
            " (torch.utils.checkpoint.checkpoint, use_reentrant=False) around the"
            " layers that hold most.",
            activations,
            ("held",),
        )
    if live and optimizer >= OPTIMIZER * live and case.world_size > 1:
        yield _advice(
            "Where every rank holds the whole optimizer state, shard it (fully_shard,"
            " or ZeroRedundancyOptimizer).",
            optimizer,
            ("held",),
        )
    if live and grads >= GRADS * live and not _in_backward(case):
        yield _advice(
            "Gradients are live outside backward: zero_grad(set_to_none=True) right"
            " after the optimizer's step lets go of them.",
            grads,
            ("held",),
        )


def _really_full(case: Case) -> Iterator[api.VerdictAdvice]:
    yield from _live(case)
    missing = case.facts.missing_bytes
    least = f"; at least {size_words(missing)} was missing" if missing else ""
    yield _advice(
        "Make the step smaller: a smaller batch with gradient accumulation, or shorter"
        f" sequences{least}.",
        None,
        ("requested", "device_free"),
    )


def _unsure(case: Case) -> Iterator[api.VerdictAdvice]:
    if not case.replayed:
        yield _advice(
            "Record the allocator's history: it tells free blocks, growth and who"
            " holds what.",
            None,
            (),
        )


def _in_backward(case: Case) -> bool:
    return any("backward" in frame or "Engine" in frame for frame in case.stack)


_FOR: Final[dict[Cause, Callable[[Case], Iterator[api.VerdictAdvice]]]] = {
    "really_full": _really_full,
    "fragmented": _fragmented,
    "growth": _growth,
    "single_giant": _single_giant,
    "imbalance": _imbalance,
    "non_torch": _non_torch,
    "fitting_block_free": _fitting,
    "unsure": _unsure,
}
