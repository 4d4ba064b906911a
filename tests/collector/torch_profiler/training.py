"""A small training, recorded with torch's own profiler, and what it left on the disk."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import torch

import memboard as mb
from tests.collector.recordings import rank_files, read

needs_python_calls = pytest.mark.skipif(
    not hasattr(torch._C._autograd._KinetoEvent, "activity_type"),
    reason="this torch does not say which of its events are Python's calls",
)

CYCLES = {"wait": 1, "warmup": 1, "active": 2, "repeat": 0}


class Training:
    """Two layers and Adam, on the processor."""

    def __init__(self):
        torch.manual_seed(0)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(32, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)
        )
        self.optimizer = torch.optim.AdamW(self.net.parameters())

    def step(self):
        self.optimizer.zero_grad()
        self.net(torch.randn(8, 32)).sum().backward()
        self.optimizer.step()


def steps(recorder, number, before=None, samples=8, **reported):
    """Train so many steps; `before`: what happens before which of them."""
    training = Training()
    for at in range(number):
        if before is not None and at in before:
            before[at]()
        training.step()
        recorder.step(samples=samples, **reported)


def train(run_dir, num_steps, schedule=None, **settings):
    """Record so many steps; the recorder, closed."""
    with record(run_dir, schedule=schedule, **settings) as recorder:
        steps(recorder, num_steps)
    return recorder


def record(run_dir, schedule=None, **settings):
    return mb.record(
        run_dir,
        scalars=False,
        schedule={**CYCLES, **(schedule or {})},
        torch_profiler={"enabled": True, **settings},
        history=False,
    )


def recording(run_dir):
    (path,) = rank_files(Path(run_dir))
    return read(path)


def cycles(run_dir):
    """What is known of each cycle, in their order: what was recorded last of it counts."""
    found = recording(run_dir).captures_of("trace")
    return list({(one.time_ns, one.iteration): one for one in found}.values())


def traces(run_dir):
    """The same of those that were traced."""
    return [one for one in cycles(run_dir) if one.meta["num_steps"]]


def missed(run_dir):
    """Cycle, steps and cause of those that were not."""
    return [
        (one.iteration, one.meta["first_step"], one.step, one.meta["problem"])
        for one in cycles(run_dir)
        if not one.meta["num_steps"]
    ]


def artifacts(run_dir):
    """Files beside the rank's own, by name."""
    (path,) = rank_files(Path(run_dir))
    folder = path.with_suffix("")
    return {p.name: p for p in sorted(folder.rglob("*")) if p.is_file()}


def load(path):
    opened = gzip.open if path.name.endswith(".gz") else open
    with opened(path, "rt") as file:
        return json.load(file)


def step_names(path):
    """The steps that torch's own tools would find, in order."""
    events = load(path)["traceEvents"]
    found = [e for e in events if str(e.get("name")).startswith("ProfilerStep#")]
    return [e["name"] for e in sorted(found, key=lambda e: e["ts"])]
