"""Costs of annotating tensors in torch's own history, on a virtual GPU.

    python -m tests.perf.annotation_cost --python PYTHON [--parameters 1000] [--rounds 5]

`--python` has a CUDA build of torch 2.14 or newer. A training of small layers with AdamW runs
on a virtual H100 while torch keeps its history, and processor time of the training thread is
read around what is annotated in each collected step: gradients as the optimizer begins. All
of them are new in each step. Beside it: torch's own call alone, for as many addresses.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

from memboard.collector.virtual.devices import parse_device
from memboard.collector.virtual.environment import environment
from tests.perf import bench

STEPS = """
import json, sys, time
import torch
from memboard.collector.history.allocator import find_allocator
from memboard.collector.history.annotations import TensorAnnotations
from memboard.collector.history.recording import HistoryRecording
from memboard.collector.history.tensors import TensorMap

layers = int(sys.argv[1]) // 2
with torch.device("cuda"):
    model = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(layers))
parameters = list(model.parameters())
optimizer = torch.optim.AdamW(parameters)
recording = HistoryRecording(find_allocator("auto"))
recording.hold("bench", max_entries=100_000, stacks="python")
tensors = TensorMap("cuda")
tensors.attach(model, [optimizer])
annotations = TensorAnnotations(recording, tensors)
annotations.start()
spent, alone = [], []
for number in range(30):
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    began = time.thread_time()
    annotations.begin("optimizer", "step", ())
    spent.append(time.thread_time() - began)
    if not number:
        optimizer.step()
        annotations.end("optimizer", False)
    addresses = [p.grad.untyped_storage().data_ptr() for p in parameters]
    annotate, text = recording.allocator.annotate, "x" * 60
    began = time.thread_time()
    for address in addresses:
        annotate(address, text)
    alone.append(time.thread_time() - began)
    optimizer.zero_grad()
each = 1e6 / len(parameters)
print(json.dumps([len(parameters), sorted(spent[5:])[3] * each, sorted(alone[5:])[3] * each]))
"""


def main() -> None:
    given = bench.options(__doc__, python=str, parameters=1000, rounds=5)
    if not given.python:
        raise SystemExit(
            "--python is missing: a Python with a CUDA build of torch 2.14."
        )
    python = Path(given.python)
    variables = environment(parse_device("h100"), python=str(python))
    variables["PYTHONPATH"] = str(bench.ROOT)
    row = bench.table("gradients", "us each, in all", "of it torch's own call")
    rounds = [
        bench.printed(STEPS, given.parameters, python=str(python), **variables)
        for _ in range(given.rounds)
    ]
    row(rounds[0][0], median(r[1] for r in rounds), median(r[2] for r in rounds))


if __name__ == "__main__":
    main()
