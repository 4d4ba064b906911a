"""One rank of a real process group: both trackers' findings as JSON on standard output.

python -m tests.collector.modules.two_ranks RANK STORE_FILE
"""

from __future__ import annotations

import functools
import json
import sys
import time
import warnings

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.collector.modules import models, oracle, reduction
from tests.collector.modules.conftest import Tracking


def sharded():
    """The transformer of the conformance list."""
    model = models.Transformer()
    for layer in model.layers:
        fully_shard(layer)
    return fully_shard(model)


def findings():
    """Per step, first ours then theirs: the peak, and the totals at every state."""
    data = models.tokens(), models.tokens()
    model, optimizer = models.started(sharded, models.conformance_step, *data)
    tracking = Tracking(model, optimizer)
    found = []
    for _ in range(2):
        tracking.kind.track_inputs(data)
        capture = tracking.step(models.conformance_step, model, optimizer, *data)
        log = reduction.Log(capture)
        rows = [
            [fqn, state, call, log.balances[event]]
            for fqn, state, call, event in log.rows()
        ]
        found.append({"peak": log.peak_snapshot(), "rows": rows})
    theirs = oracle.fsdp_tracker(model, optimizer, data)
    with theirs:
        models.conformance_step(model, optimizer, *data)
    found.append({"peak": oracle.peak_snapshot(theirs)})
    for _ in range(3):
        models.conformance_step(model, optimizer, *data)
    return found


class Buffers(TorchDispatchMode):
    """The storages that operators return, held weakly."""

    def __init__(self):
        super().__init__()
        self.storages = []

    def __torch_dispatch__(self, op, _types, args=(), kwargs=None):
        found = op(*args, **(kwargs or {}))
        for value in tree_leaves(found):
            if isinstance(value, torch.Tensor):
                self.storages.append(StorageWeakRef(value.untyped_storage()))
        return found


def uses_of(tensors):
    """How many hold each tensor, and its storage: gloo has views of its own."""
    return [
        (
            tensor._use_count(),
            torch._C._storage_Use_Count(tensor.untyped_storage()._cdata),
        )
        for tensor in tensors
    ]


def released(collective):
    """`collective`, which returns when gloo's threads have let its tensors go too.

    They give up what they were handed, and a buffer of their own, a moment after the
    collective is over: trackers would see it in what the model does next.
    """

    @functools.wraps(collective)
    def until_released(*arguments, **options):
        given = (*arguments, *options.values())
        tensors = [value for value in given if isinstance(value, torch.Tensor)]
        before = uses_of(tensors)
        ours = {StorageWeakRef(tensor.untyped_storage()).cdata for tensor in tensors}
        with Buffers() as buffers:
            assert collective(*arguments, **options) is None
        others = [one for one in buffers.storages if one.cdata not in ours]
        while uses_of(tensors) != before:
            time.sleep(0)
        while not all(storage.expired() for storage in others):
            time.sleep(0)

    return until_released


def main():
    """Join the group and print."""
    rank, path = int(sys.argv[1]), sys.argv[2]
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    dist.init_process_group(
        "gloo", rank=rank, world_size=2, store=dist.FileStore(path, 2)
    )
    dist.all_gather_single = released(dist.all_gather_single)
    dist.reduce_scatter_single = released(dist.reduce_scatter_single)
    print(json.dumps(findings()))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
