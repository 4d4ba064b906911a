"""What the virtual GPU costs: its start, a training step of 1.4 B parameters, its memory.

    python -m tests.perf.virtual_gpu --python .venv-virtual/bin/python [--rounds 5]

`--python` has torch's CUDA build. Starts are fresh interpreters, which import torch and put
one tensor on the device; beside them the same torch, which stays on the processor (it needs
the stubs too, or it cannot be imported). The step is forward, backward and AdamW of a GPT in
bfloat16, 8 sequences of 2,048 tokens, on a virtual H100; its processor time shows whether a
core is kept busy.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from collector.virtual.devices import parse_device
from collector.virtual.environment import environment

ROOT = Path(__file__).parents[2]
START = "import torch; torch.zeros(1, device={device!r})"

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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    device = parse_device("h100")
    with tempfile.TemporaryDirectory() as cache:
        fresh = {"MEMBOARD_CACHE_DIR": cache}
        first = seconds(lambda: environment(device, python=options.python, base=fresh))
    again = statistics.median(
        seconds(lambda: environment(device, python=options.python))
        for _ in range(options.rounds)
    )
    variables = environment(device, python=options.python)
    variables["PYTHONPATH"] = str(ROOT)

    def run(code: str) -> str:
        done = subprocess.run(
            [options.python, "-c", code],
            env=variables,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    starts: dict[str, list[float]] = {"cuda": [], "cpu": []}
    for _ in range(options.rounds):
        for where, taken in starts.items():
            taken.append(seconds(lambda at=where: run(START.format(device=at))))
    found = json.loads(run(STEP))
    on, off = (statistics.median(starts[where]) for where in ("cuda", "cpu"))
    print(f"stubs: built {first:.1f} s, once; found again {again * 1e3:.0f} ms")
    print(
        f"start: {on:.2f} s, {on - off:+.2f} s beside the same torch on the processor"
    )
    print(
        f"step of {found['parameters'] / 1e9:.2f} B parameters: {found['step']:.2f} s,"
        f" {found['busy']:.2f} s of a processor; idle {found['idle']:.1%}"
    )
    print(
        f"memory: {found['resident'] / 1e6:.0f} MB of the host"
        f" ({found['imported'] / 1e6:.0f} after the import), peak"
        f" {found['peak'] / 2**30:.1f} GiB of the virtual device"
    )


def seconds(work) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
