"""Costs of the virtual GPU: its start, a training step of 1.4 B parameters, its memory.

    python -m tests.perf.virtual_gpu --python .venv-virtual/bin/python [--rounds 5]

`--python` has torch's CUDA build. Starts are fresh interpreters, which import torch and put
one tensor on the device; beside them the same torch, which stays on the processor (it needs
the stubs too, or it cannot be imported). The step is forward, backward and AdamW of a GPT in
bfloat16, 8 sequences of 2,048 tokens, on a virtual H100; its processor time shows whether a
core is kept busy.
"""

from __future__ import annotations

import statistics
from functools import partial

from memboard.collector.virtual.devices import parse_device
from memboard.collector.virtual.environment import environment
from tests.perf import bench

START = "import torch; print(len(torch.zeros(1, device={device!r})))"

STEP = """
import json, resource, time
import torch
from tests.virtual.smoke import Gpt

imported_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with torch.device("cuda"):
    model = Gpt(words=50_304, width=2048, layers=24).bfloat16()
optimizer = torch.optim.AdamW(model.parameters())
batch = torch.zeros(8, 2048, dtype=torch.long, device="cuda")
steps, busy = [], []
for _ in range(6):
    started, spent = time.perf_counter(), time.process_time()
    model(batch).float().logsumexp(-1).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    steps.append(time.perf_counter() - started)
    busy.append(time.process_time() - spent)
started = time.process_time()
time.sleep(2.0)
idle = time.process_time() - started
print(json.dumps({
    "parameters": sum(p.numel() for p in model.parameters()),
    "step": sorted(steps[1:])[2],
    "busy": sorted(busy[1:])[2],
    "idle": idle / 2.0,
    "peak": torch.cuda.max_memory_allocated(),
    "imported": imported_kib * 1024,
    "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
}))
"""


def main() -> None:
    given = bench.options(__doc__, python=str, rounds=5)
    device = parse_device("h100")
    find = partial(environment, device, python=given.python)
    with bench.folder() as cache:
        fresh = {"MEMBOARD_CACHE_DIR": str(cache)}
        first = bench.seconds(partial(find, base=fresh))
    again = statistics.median(bench.seconds(find) for _ in range(given.rounds))
    variables = {**find(), "PYTHONPATH": str(bench.ROOT)}
    run = partial(bench.printed, python=given.python, **variables)
    starts = bench.turns(
        {
            where: partial(bench.seconds, partial(run, START.format(device=where)))
            for where in ("cuda", "cpu")
        },
        given.rounds,
    )
    found = run(STEP)
    on, off = (statistics.median(starts[where]) for where in ("cuda", "cpu"))
    row = bench.table("virtual GPU", "")
    row("stubs built, once, s", first)
    row("stubs found again, ms", again * 1e3)
    row("start, s", on)
    row("the same torch on the processor, s", off)
    row("parameters of the step, B", found["parameters"] / 1e9)
    row("step, s", found["step"])
    row("step, s of a processor", found["busy"])
    row("processor while idle", f"{found['idle']:.1%}")
    row("memory of the host, MB", found["resident"] / 1e6)
    row("memory after the import, MB", found["imported"] / 1e6)
    row("peak of the virtual device, GiB", found["peak"] / 2**30)


if __name__ == "__main__":
    main()
