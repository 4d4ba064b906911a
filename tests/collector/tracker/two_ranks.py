"""One rank of a real process group: both trackers' findings as JSON on standard output.

python -m tests.collector.tracker.two_ranks RANK STORE_FILE
"""

from __future__ import annotations

import json
import sys
import warnings

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

from tests.collector.tracker import models, oracle, reduction
from tests.collector.tracker.conftest import Tracking


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


def main():
    """Join the group and print."""
    rank, path = int(sys.argv[1]), sys.argv[2]
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    dist.init_process_group(
        "gloo", rank=rank, world_size=2, store=dist.FileStore(path, 2)
    )
    print(json.dumps(findings()))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
