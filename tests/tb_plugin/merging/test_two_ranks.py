"""Two ranks of gloo under torch's profiler: their collectives meet in the merged trace."""

from __future__ import annotations

import gzip
import json

import pytest

from memboard.tb_plugin.cli import main
from tests import programs
from tests.tb_plugin.merging.chrome import check, events, ns_of, rank_of

TRAINING = """
import sys, time
import torch
import torch.distributed as dist
import memboard as mb

rank = int(sys.argv[1])
dist.init_process_group("gloo", sys.argv[3], rank=rank, world_size=2)
rec = mb.record(
    sys.argv[2],
    torch_profiler=True,
    schedule={"wait": 1, "warmup": 1, "active": 2},
    scalars=False,
)
x = torch.ones(256, 256)
for step in range(6):
    with rec.span("compute"):
        for _ in range(5):
            x = (x @ x).clamp(0, 1)
    with rec.span("reduce", category="communication"):
        time.sleep(0.02 * rank)  # a straggler: the other rank waits for it
        dist.all_reduce(x)
    rec.step()
dist.barrier()
rec.close()
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_a_collective_overlaps_itself_on_the_other_rank(tmp_path):
    pytest.importorskip("torch.distributed")
    meeting = (tmp_path / "meeting").as_uri()  # a port may be taken by somebody else
    run = tmp_path / "run"
    ranks = [programs.Program(TRAINING, rank, run, meeting) for rank in range(2)]
    for rank in ranks:
        _, errors = rank.communicate()
        assert rank.returncode == 0, errors[-2000:]
    assert main(["merge", str(run)]) == 0
    trace = json.loads(gzip.decompress((run / "merged_trace.json.gz").read_bytes()))
    check(trace)
    assert trace["metadata"]["problems"] == []
    told = trace["metadata"]["ranks"]
    assert [one["clock_method"] for one in told] == ["reference", "same_host"]

    for rank in (0, 1):
        told_steps = [
            e["args"]["step"] if e["name"] == "step" else int(e["name"].split("#")[1])
            for e in events(trace, "X")
            if rank_of(trace, e) == rank
            and (e["name"] == "step" or e["name"].startswith("ProfilerStep#"))
            and e.get("cat") != "cpu_op"
        ]
        assert sorted(told_steps) == list(range(6)), "each step is there once"

    def intervals(name):
        """By rank, when slices of that name began and ended, in ns."""
        found = {0: [], 1: []}
        for event in events(trace, "X"):
            if event["name"] == name:
                begin = ns_of(trace, event)
                end = begin + round(event["dur"] * 1000)
                found[rank_of(trace, event)].append((begin, end))
        return {rank: sorted(of) for rank, of in found.items()}

    reduced = intervals("gloo:all_reduce")
    assert len(reduced[0]) == len(reduced[1]) >= 2
    for zero, one in zip(reduced[0], reduced[1], strict=True):
        # Nobody has the sum before everybody has given.
        assert min(zero[1], one[1]) > max(zero[0], one[0])
    # Our spans lie around torch's events of the same rank, on one clock.
    for rank, spans in intervals("reduce").items():
        for begin, end in reduced[rank]:
            assert any(b - 50_000 <= begin and end <= e + 50_000 for b, e in spans)
    flows = {event["id"] for event in events(trace, "s")}
    assert flows == {event["id"] for event in events(trace, "f")}
