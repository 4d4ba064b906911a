"""What to try, each piece only where the evidence calls for it.

Every setting is one that torch documents (notes/cuda, torch.utils.checkpoint,
torch.distributed.fsdp, Optimizer.zero_grad). The bytes are what is at stake at most, not
a promise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tb_plugin.analysis.oom.verdict import above_peers_bytes, excess_non_torch_bytes
from tb_plugin.pages.verdict.live_advice import advice, holding_advice, live_advice
from tb_plugin.pages.verdict.words import size_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tb_plugin import api
    from tb_plugin.analysis.oom.verdict import Cause
    from tb_plugin.pages.verdict.case import Case

MAX_ADVICE: Final = 6

LONGER: Final = 1.25
"""Of the largest request of the same stack: lengths vary by less in most batches."""

EXPANDABLE: Final = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


def advice_of(case: Case) -> tuple[api.VerdictAdvice, ...]:
    """What to try: for the cause first, then for what holds beside it."""
    found: list[api.VerdictAdvice] = []
    for cause in (case.verdict.cause, *case.verdict.also):
        found += _FOR[cause](case)
    if case.verdict.cause in _SHORT:
        found += live_advice(case)
    distinct = {(one.text, one.setting): one for one in found}
    return tuple(distinct.values())[:MAX_ADVICE]


_SHORT: Final[frozenset[Cause]] = frozenset(("growth", "imbalance", "non_torch"))
"""Causes with which less live memory would have helped as well."""


def _limit(case: Case) -> Iterator[api.VerdictAdvice]:
    yield advice(
        "The device had room: raise the limit on this process"
        " (torch.cuda.set_per_process_memory_fraction), or leave it away.",
        case.facts.device_free_bytes,
        ("device_free", "limit"),
    )
    if case.verdict.cause == "process_limit":
        yield from live_advice(case)


def _pending(case: Case) -> Iterator[api.VerdictAdvice]:
    pending = case.facts.pending
    lines = "" if pending is None else ", ".join(pending.lines)
    where = f" at {lines}" if lines else ""
    yield advice(
        f"Fetch or gather fewer tensors ahead{where}: each one that is freed while another"
        " stream uses it stays until that stream has caught up.",
        case.facts.pending_bytes,
        ("pending_free",),
    )
    yield advice(
        "Free them when their consumer is done: let the stream that allocated them wait"
        " for it (stream.wait_stream) and keep a reference until then, in place of"
        " tensor.record_stream; or synchronize every few steps. FSDP1 does so with"
        " limit_all_gathers=True, and FSDP2 uses no record_stream.",
        None,
        ("pending_free",),
    )


def _fragmented(case: Case) -> Iterator[api.VerdictAdvice]:
    free = case.facts.free
    size = None if free is None else free.num_bytes
    because = ("unused",) if free is None else ("free_blocks", "largest_free")
    if case.expandable is not True:
        yield advice(
            "Let segments grow and shrink by pages, so that what is free can be put"
            " together. Set it before the process starts.",
            size,
            because,
            EXPANDABLE,
        )
        return
    yield advice(
        "Segments are expandable already: long-lived blocks are scattered among freed"
        " ones. Allocate long-lived tensors first, and keep sizes from varying (pad"
        " batches to a few lengths).",
        size,
        because,
    )


def _growth(case: Case) -> Iterator[api.VerdictAdvice]:
    yield from holding_advice(case, ("no_backward", "kv_cache", "prefetched"))
    growth = case.facts.growth
    lines = "" if growth is None else ", ".join(growth.lines)
    where = f" at {lines}" if lines else ""
    if case.verdict.cause != "growth":
        what = f"Some memory is kept by every round as well{where}"
    else:
        what = f"Find what retains memory from step to step{where}"
    yield advice(
        f"{what}: keep numbers (.item()) or copies on the host"
        f"{_GRAPH if case.trains else ''}; bound or clear a list or a cache that gets"
        " one more entry for each batch or key.",
        None if growth is None else growth.num_bytes,
        ("growth", "growth_per_round"),
    )


_GRAPH: Final = " that were detached, not tensors with their graph"


def _single_giant(case: Case) -> Iterator[api.VerdictAdvice]:
    facts = case.facts
    beyond = (facts.requested_bytes or 0) - (facts.largest_before_bytes or 0)
    where = f" at {case.asked_at}" if case.asked_at else ""
    yield advice(
        f"Make this one request smaller{where}: do it in chunks, for fewer elements at"
        " once, or in a smaller data type.",
        beyond,
        ("requested", "largest_before"),
    )


def _imbalance(case: Case) -> Iterator[api.VerdictAdvice]:
    yield advice(
        "Even out what the ranks hold: equal batches, sequence lengths and shards."
        " Compare this rank with another one line by line.",
        above_peers_bytes(case.facts),
        ("above_peers", "median_peer"),
    )


def _non_torch(case: Case) -> Iterator[api.VerdictAdvice]:
    yield advice(
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
        yield advice(
            "A private memory pool keeps it, e.g. that of a CUDA graph: let graphs"
            " share one pool (torch.cuda.graph(..., pool=...)), or drop those that"
            " are not used any more.",
            size,
            because,
        )
        return
    if elsewhere.place == "split":
        yield advice(
            "max_split_size_mb keeps large blocks whole for large requests: raise it"
            " above this request, or leave it away.",
            size,
            because,
        )
        return
    if case.expandable is not True:
        yield advice(
            "With expandable segments, free pages go back to the device whatever"
            " stream they are of. Set it before the process starts.",
            size,
            because,
            EXPANDABLE,
        )
    yield advice(
        "Memory of one stream does not serve another: allocate where it is used, or"
        " free it and call torch.cuda.empty_cache() before the other stream needs it.",
        size,
        because,
    )


def _private_pools(case: Case) -> Iterator[api.VerdictAdvice]:
    yield from holding_advice(case, ["private_pools"])
    if not any(one.kind == "private_pools" for one in case.holdings):
        yield advice(
            "Let CUDA graphs share one pool (torch.cuda.graph(..., pool=...)), capture the"
            " largest size first, and drop graphs that are not replayed any more.",
            case.facts.private_free_bytes,
            ("private_free", "private_pools"),
        )


def _really_full(case: Case) -> Iterator[api.VerdictAdvice]:
    yield from live_advice(case)
    missing = case.facts.missing_bytes
    least = f"; at least {size_words(missing)} was missing" if missing else ""
    yield from _longer(case)
    if case.makes_model:
        return
    if not case.trains:
        yield advice(
            f"Make a pass smaller: a smaller batch, or shorter sequences{least}.",
            None,
            ("requested", "device_free"),
        )
    elif case.asked_in != "optimizer":
        yield advice(
            "Make the step smaller: a smaller batch with gradient accumulation, or"
            f" shorter sequences{least}.",
            None,
            ("requested", "device_free"),
        )
    if case.facts.capacity_bytes is None:
        yield advice(
            "See whether other processes use the device (nvidia-smi): its size was not"
            " recorded, so that they may hold memory cannot be ruled out.",
            None,
            ("full",),
        )


def _longer(case: Case) -> Iterator[api.VerdictAdvice]:
    """Where the line that asked never asked for as much: the batch is the unusual thing."""
    asked, before = case.facts.requested_bytes, case.facts.largest_here_bytes
    if asked is None or not before or asked < LONGER * before:
        return
    where = f" at {case.asked_at}" if case.asked_at else ""
    yield advice(
        f"This batch is longer or larger than those before it: the request{where} is"
        f" {asked / before:,.1f} times the largest that came of the same call before."
        " Limit the length of sequences, or group batches by their number of tokens.",
        asked - before,
        ("requested",),
    )


def _unsure(case: Case) -> Iterator[api.VerdictAdvice]:
    yield from holding_advice(case)
    if not case.replayed:
        yield advice(
            "Record the allocator's history: it tells free blocks, growth and who"
            " holds what.",
            None,
            (),
        )


_FOR: Final[dict[Cause, Callable[[Case], Iterator[api.VerdictAdvice]]]] = {
    "really_full": _really_full,
    "fragmented": _fragmented,
    "growth": _growth,
    "single_giant": _single_giant,
    "imbalance": _imbalance,
    "non_torch": _non_torch,
    "fitting_block_free": _fitting,
    "private_pools": _private_pools,
    "pending_free": _pending,
    "process_limit": _limit,
    "unsure": _unsure,
}
