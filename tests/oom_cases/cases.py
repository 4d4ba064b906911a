"""All kinds of cases by name."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from tests.oom_cases.programs import (
    holders,
    later,
    leaks,
    no_room,
    pools,
    refused,
    several,
    too_large,
)
from tests.oom_cases.truth import Case, Truth

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.oom_cases.bench import Bench

KINDS: dict[str, Callable[[int], tuple[Bench, Truth]]] = {
    program.__name__: program
    for program in (
        leaks.leak_losses,
        leaks.leak_outputs,
        leaks.leak_cache,
        leaks.leak_without_marks,
        too_large.steady_constant,
        too_large.steady_varying,
        too_large.optimizer_first,
        too_large.backward_first,
        too_large.logits,
        too_large.giant,
        too_large.eval_with_graph,
        no_room.fragmented,
        no_room.fragmented_varying,
        no_room.pending,
        no_room.other_process,
        no_room.process_limit,
        no_room.fraction_in_settings,
        no_room.unknown_capacity,
        holders.graph_pool,
        holders.kv_cache,
        holders.second_copy,
        holders.cublas_workspaces,
        holders.checkpoint_load,
        holders.prefetch,
        several.retry,
        several.accumulate_unsharded,
        several.one_of_several,
        several.no_history,
        refused.freed_in_attempt,
        refused.refused_with_room,
        refused.unknown_total,
        pools.colocated,
        pools.pluggable_allocator,
        pools.graphs_per_shape,
        pools.user_pool_cached,
        later.reference_cycles,
        later.recordstream_peak,
        later.pinned_growth,
    )
}


def make(kind: str, seed: int) -> Case:
    """Run one program, and dump its memory."""
    bench, truth = KINDS[kind](seed)
    causes = truth.causes
    if "full" in causes and bench.has_room and "fragmented" not in causes:
        # Both are true: much is live, and what is free lies in pieces.
        causes = (*causes, "fragmented")
    return Case(kind, seed, bench.snapshot(), dataclasses.replace(truth, causes=causes))
