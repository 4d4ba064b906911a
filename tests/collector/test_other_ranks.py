"""Ranks of one job: each finds its name, and none needs another to be there."""

from __future__ import annotations

import os

import pytest

from tests import programs
from tests.collector.recordings import rank_files, read

pytest.importorskip("torch")


def test_ranks_spawned_without_a_launcher_find_their_names_later(tmp_path):
    program = (
        "import os, sys, memboard as mb, torch.distributed as dist\n"
        "rank = int(sys.argv[2])\n"
        "with mb.record(sys.argv[1]) as rec:\n"
        "    store = dist.FileStore(sys.argv[1] + '.store', 2)\n"
        "    dist.init_process_group('gloo', store=store, rank=rank, world_size=2)\n"
        "    for _ in range(3): rec.step()\n"
        "    dist.barrier(); dist.destroy_process_group()\n"
        "print(rec.rank)\n"
    )
    environ = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    ranks = [
        programs.Program(program, tmp_path / "run", rank, env=environ)
        for rank in range(2)
    ]
    assert [process.communicate()[0].strip() for process in ranks] == [
        "0",
        "1",
    ]
    found = [read(path) for path in rank_files(tmp_path / "run")]
    assert [f.header.rank for f in found] == [0, 1]
    assert [f.header.world_size for f in found] == [2, 2]
    assert [f.steps() for f in found] == [[0, 1, 2], [0, 1, 2]]
    assert len(list((tmp_path / "run" / "memboard").iterdir())) == 1


RECORDS_ALONE = """
import os, pathlib, signal, sys, time, memboard as mb, torch, torch.distributed as dist
folder, rank = pathlib.Path(sys.argv[1]), int(sys.argv[2])
store = dist.FileStore(str(folder / "store"), 2)
dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
if rank == 1:  # which records nothing, and would answer nothing
    while not (folder / "ended").exists(): time.sleep(0.05)
    os._exit(0)
handlers = [signal.getsignal(number) for number in signal.valid_signals()]
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters())
options = dict(modules=True, torch_profiler=True, merge_on_close=True)
with mb.record(folder / "run", model=model, optimizer=optimizer, **options) as rec:
    for _ in range(4):
        model(torch.rand(2, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        rec.step()
    are_same = handlers == [signal.getsignal(one) for one in signal.valid_signals()]
(folder / "ended").touch()
print(f"same handlers {are_same}, rank {rec.rank}", flush=True)
os._exit(0)
"""


def test_recording_waits_for_no_other_rank_and_takes_no_signal(tmp_path):
    environ = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    ranks = [
        programs.Program(RECORDS_ALONE, tmp_path, rank, env=environ)
        for rank in range(2)
    ]
    outputs = [process.communicate()[0] for process in ranks]
    assert "same handlers True, rank 0\n" in outputs[0]
    (path,) = rank_files(tmp_path / "run")
    assert read(path).steps() == [0, 1, 2, 3]
