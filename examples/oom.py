"""Running out of memory on purpose: the report that a recording leaves of it.

    python examples/oom.py --logdir runs
    tensorboard --logdir runs

A small training keeps the outputs of every step "for later", which fills the device: the
growth that most out-of-memory errors of long trainings are. Nothing has to be switched
on: the recording ends with what was requested, what was free, who held the memory and
since when. On a GPU torch is first given two GiB of it, so that it takes seconds. Without
one there is no device to fill: the last step asks for more than the host can have, and
the report says what is known of that.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

import memboard as mb

HIDDEN = 512
BATCH = 4096
LIMIT_BYTES = 2 << 30
TOO_MUCH = 1 << 52
"""Bytes that no host has."""


def train(run_dir: Path, *, num_steps: int, device: torch.device) -> None:
    model = nn.Sequential(
        nn.Linear(HIDDEN, 4 * HIDDEN), nn.GELU(), nn.Linear(4 * HIDDEN, HIDDEN)
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    kept_outputs = []
    with mb.record(run_dir, model=model, optimizer=optimizer) as rec:
        for step in range(num_steps):
            inputs = torch.randn(BATCH, HIDDEN, device=device)
            with rec.span("forward"):
                outputs = model(inputs)
                kept_outputs.append(outputs)  # with the graph that made them
                if device.type == "cpu" and step == num_steps - 1:
                    torch.empty(TOO_MUCH, dtype=torch.uint8)
            functional.mse_loss(outputs, inputs).backward(retain_graph=True)
            optimizer.step()
            optimizer.zero_grad()
            rec.step()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--logdir", type=Path, default=Path("runs"))
    parser.add_argument("--steps", type=int, default=1000, help="on a GPU, at most")
    options = parser.parse_args()
    device, num_steps = torch.device("cpu"), min(4, options.steps)
    if torch.cuda.is_available():
        device, num_steps = torch.device("cuda"), options.steps
        _, total = torch.cuda.mem_get_info()
        torch.cuda.set_per_process_memory_fraction(min(1.0, LIMIT_BYTES / total))
    run_dir = options.logdir / "oom"
    try:
        train(run_dir, num_steps=num_steps, device=device)
    except RuntimeError as error:  # torch.OutOfMemoryError is one
        print(f"ran out of memory, as it should: {str(error).splitlines()[0][:200]}")
        print(f"the report is in {run_dir}")


if __name__ == "__main__":
    main()
