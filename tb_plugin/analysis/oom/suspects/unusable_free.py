"""Causes by which memory was free, and could not serve the request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memboard.collector.format.sizes import agreeing, counted
from memboard.tb_plugin.analysis.findings.conditions import advice_if, advice_of
from memboard.tb_plugin.analysis.findings.text import (
    at_lines,
    joined,
    lines_text,
    share_text,
    size_text,
)
from memboard.tb_plugin.analysis.oom.case import (
    MAJOR,
    MAJOR_FREE,
    MANY_POOLS,
    Suspect,
    weighed,
)
from memboard.tb_plugin.analysis.oom.live_advice import POOLS, holding_advice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.analysis.oom.case import (
        Case,
        Elsewhere,
        Place,
    )
    from memboard.tb_plugin.analysis.oom.holders import Holding
    from memboard.tb_plugin.api.findings import Advice

_EXPANDABLE: Final = "expandable_segments:True"

_KEPT: Final[dict[Place, str]] = {
    "here": "it became free only while this attempt failed, for it is in the request's own"
    " pool and stream: the allocator does not search its blocks again before it gives up",
    "stream": "it belongs to another stream",
    "pool": "it belongs to another memory pool",
    "split": "max_split_size_mb keeps it whole",
}


def fitting_block_free(case: Case) -> Suspect | None:
    """A free block as large as the request exists, which it did not get."""
    facts, elsewhere = case.facts, case.facts.elsewhere
    asked = facts.requested_bytes
    if asked is None or elsewhere is None or elsewhere.largest_bytes < asked:
        return None
    size = elsewhere.largest_bytes
    of_pool = ""
    if elsewhere.place == "pool" and not facts.knows_pool:
        of_pool = " than the ordinary one; the request's own is not recorded"
    return Suspect(
        "fitting_block_free",
        size,
        elsewhere.place == "here" or size >= MAJOR_FREE * (facts.room_bytes or 0),
        f"a free block of {size_text(size)} would have fitted, but"
        f" {_KEPT[elsewhere.place]}{of_pool}.",
        "a free block as large as the request: of its own pool and stream; or of"
        f" another one, of at least {share_text(MAJOR_FREE)} of the memory available to torch",
        ("elsewhere",),
        tuple(_fitting_advice(case, elsewhere)),
    )


def fits_here(case: Case, suspect: Suspect) -> bool:
    """Whether the cause is a block of the request's own pool and stream: no other is."""
    elsewhere = case.facts.elsewhere
    is_fitting = suspect.cause == "fitting_block_free"
    return is_fitting and elsewhere is not None and elsewhere.place == "here"


def _fitting_advice(case: Case, elsewhere: Elsewhere) -> Iterator[Advice]:
    size, because = elsewhere.largest_bytes, ("elsewhere", "requested")
    if elsewhere.place == "here":
        yield advice_of(
            "Repeat the request: catch torch.OutOfMemoryError, call"
            " torch.cuda.synchronize() and try once more; the block is free now.",
            None,
            *because,
        )
        yield advice_of(
            "Use tensor.record_stream for fewer or smaller tensors: a block that another"
            " stream has used becomes free only when that stream has passed, here too"
            " late. Or synchronize before the largest requests.",
            None,
            *because,
        )
        return
    if elsewhere.place == "pool":
        yield from _pool_advice(case, size)
        return
    if elsewhere.place == "split":
        yield advice_of(
            "max_split_size_mb keeps large blocks whole for large requests: raise it"
            " above this request, or remove it.",
            size,
            *because,
        )
        return
    yield from advice_if(
        case.setup.can_expand,
        "With expandable segments, free pages of every stream can be returned to"
        f" the device. Set it before the process starts.{case.setup.variables_text}",
        size,
        *because,
        setting=case.setup.allocator_variable(_EXPANDABLE),
    )
    yield advice_of(
        "Memory of one stream does not serve another: allocate where it is used, or"
        " free it and call torch.cuda.empty_cache() before the other stream needs it.",
        size,
        *because,
    )


MUCH_FREE: Final = 0.15
"""Free blocks that no request of the usual size fits: beyond what splitting costs."""


def fragmented(case: Case) -> Suspect | None:
    """The free blocks where the request belongs add up to it, and none is as large.

    Splitting leaves a few per cent free in every healthy training: where those do not
    serve a request of the usual size, live memory has filled the rest.
    """
    facts, free = case.facts, case.facts.free
    asked, before = facts.requested_bytes, facts.largest_before_bytes
    if asked is None:
        return None
    if free is None:
        # Only totals are known: whatever was reserved and not held was of no use.
        size, largest = facts.unused_bytes or 0, 0
        why = (
            f"{size_text(size)} was reserved but free, in blocks that were too small,"
            f" belonged to another stream or pool, or became free too late."
        )
    else:
        size, largest = free.num_bytes, free.largest_bytes
        why = (
            f"the memory was fragmented, with {size_text(size)} free in"
            f" {counted(free.num_blocks, 'block')}, the largest {size_text(largest)}."
        )
    is_known = free is not None or facts.unused_bytes is not None
    if not is_known or size < asked or (free is not None and asked <= largest):
        return None
    is_usual = before is not None and asked <= before
    least = MUCH_FREE if is_usual else MAJOR_FREE
    return Suspect(
        "fragmented",
        size,
        size >= least * (facts.room_bytes or 0),
        why,
        "the free blocks of the request's pool and stream add up to it, and none is"
        " large enough; at"
        f" least {share_text(MAJOR_FREE)} of the memory available to torch, or"
        f" {share_text(MUCH_FREE)} where equally large requests were served before",
        ("free_blocks", "largest_free", "unused"),
        tuple(_defragment(case)),
    )


def _defragment(case: Case) -> Iterator[Advice]:
    free = case.facts.free
    # Of totals alone it is not known whether it could be put together.
    gain = None if free is None else float(free.num_bytes)
    because = ("unused",) if free is None else ("free_blocks", "largest_free")
    yield from advice_if(
        case.setup.can_expand,
        "Let segments grow and shrink by pages, so that free pages can be"
        f" combined. Set it before the process starts.{case.setup.variables_text}",
        gain,
        *because,
        setting=case.setup.allocator_variable(_EXPANDABLE),
    )
    already = (
        "Segments are expandable already: long" if case.setup.expandable else "Long"
    )
    yield from advice_if(
        not case.setup.can_expand,
        f"{already}-lived blocks are scattered among freed ones. Allocate long-lived"
        " tensors first, and use few different sizes (pad batches to a few lengths).",
        gain,
        *because,
    )


def private_pools(case: Case) -> Suspect | None:
    """What is free in private pools would have covered it, and no one block of them.

    Or what many graphs reserved that were each captured into a pool of its own.
    """
    facts, unused = case.facts, case.facts.private_free_bytes or 0
    elsewhere, asked = facts.elsewhere, facts.requested_bytes or 0
    room, missing = facts.room_bytes or 0, max(1, facts.missing_bytes or 0)
    fits = elsewhere is not None and elsewhere.largest_bytes >= asked
    is_of_pool = elsewhere is not None and elsewhere.place == "pool"
    weight = None if fits and is_of_pool else weighed(unused, missing, room)
    captured = facts.captured
    if captured is not None and captured.num >= MANY_POOLS:
        reserved = weighed(captured.num_bytes, missing, room)
        is_mostly_live = 2 * unused <= captured.num_bytes
        if reserved is not None and (weight is None or not weight[0] or is_mostly_live):
            return _captured(case, captured, *reserved)
    if weight is None or not unused:
        return None
    num = facts.num_private_pools
    pools = f"{num:,} private memory pools" if num else "private memory pools"
    pools = "one private memory pool" if num == 1 else pools
    may_not = (
        "which this request may not use"
        if facts.knows_pool
        else f"which {agreeing(num or 2, 'serves', 'serve')} none but"
        f" {agreeing(num or 2, 'its', 'their')} own requests; the pool of this request is"
        " not recorded"
    )
    return Suspect(
        "private_pools",
        unused,
        weight[0],
        f"{size_text(unused)} was free in {pools}, of CUDA graphs or"
        f" torch.cuda.MemPool, {may_not}.",
        "free memory in private pools covers the shortage, and is at least"
        f" {share_text(MAJOR)} of the memory available to torch",
        ("private_free", "private_pools"),
        _pool_advice(case, unused),
        holds=weight[1],
    )


def _captured(case: Case, captured: Holding, is_major: bool, holds: bool) -> Suspect:
    size, num = captured.num_bytes, captured.num
    of = (
        "CUDA graphs"
        if captured.kind == "graph_pools"
        else "CUDA graphs or torch.cuda.MemPool"
    )
    return Suspect(
        "private_pools",
        size,
        is_major,
        f"{num:,} private memory pools of {of}, each filled on its own, reserve"
        f" {size_text(size)}{at_lines(captured.lines)}, {size_text(captured.free_bytes)} of"
        " it free.",
        f"at least {MANY_POOLS} pools were filled at one go each; what they reserve covers"
        f" the shortage, and is at least {share_text(MAJOR)} of the memory available to"
        " torch",
        ("private_pools",),
        _pool_advice(case, size),
        holds=holds,
    )


def _pool_advice(case: Case, size: int) -> tuple[Advice, ...]:
    """On the pools that are known; of totals alone, on what they may be."""
    return tuple(holding_advice(case, POOLS)) or (
        advice_of(
            "If CUDA graphs use them, let graphs share one pool (torch.cuda.graph(...,"
            " pool=...)), capture the largest size first, and delete graphs that are no"
            " longer replayed. If they are torch.cuda.MemPool, drop those that are no"
            " longer needed.",
            size,
            "private_free",
            "private_pools",
        ),
    )


def pending_free(case: Case) -> Suspect | None:
    """What was freed, and another stream might still use, would have covered it."""
    facts, size = case.facts, case.facts.pending_bytes
    room, missing = facts.room_bytes or 0, facts.missing_bytes or 0
    weight = weighed(size or 0, max(1, missing), room)
    if not size or weight is None:
        return None
    pending = facts.pending
    lines = () if pending is None else pending.lines
    why = f"{size_text(size)} had been freed but was still pending and not reusable"
    if pending is None:
        why += ": it waited for another stream that had used it (record_stream)."
    else:
        streams = joined([stream_name for stream_name, _ in pending.streams])
        by = f" by {lines_text(lines)}" if lines else ""
        why += (
            f", because its blocks, allocated on {streams}{by}, waited for another"
            " stream that had used them (record_stream)."
        )
    return Suspect(
        "pending_free",
        size,
        weight[0],
        why,
        f"freed memory that another stream may still use covers the shortage, and is"
        f" at least {share_text(MAJOR)} of the memory available to"
        f" torch",
        ("pending_free",),
        (
            advice_of(
                f"Fetch or gather fewer tensors ahead{at_lines(lines)}: a tensor that"
                f" is freed while another stream uses it cannot be reused until that"
                f" stream has caught up.",
                size,
                "pending_free",
            ),
            advice_of(
                "Free them after their consumer is done: let the stream that"
                " allocated them wait for it (stream.wait_stream) and keep a"
                " reference until then, instead of calling tensor.record_stream; or"
                " synchronize every few steps. FSDP1"
                " does so with limit_all_gathers=True, and FSDP2 uses no record_stream.",
                None,
                "pending_free",
            ),
        ),
        holds=weight[1],
    )
