"""For tests that need a device: a real one, or the virtual one of `on_virtual.py`."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from memboard.collector.virtual.current_device import virtual_device

HERE = Path(__file__).parent
ON = virtual_device()
GPU_OUT = os.environ.get("MEMBOARD_GPU_OUT")
"""Where recordings and pickles are left, if anywhere."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip where there is no device, and what the virtual GPU cannot do."""
    ours = [item for item in items if item.path.is_relative_to(HERE)]
    if not ours:
        return
    torch = pytest.importorskip("torch")
    is_there = torch.cuda.is_available()
    if ON is not None and not is_there:
        raise pytest.UsageError(f"torch finds no device on the {ON}")
    for item in ours:
        item.add_marker(pytest.mark.gpu)
        if not is_there:
            item.add_marker(pytest.mark.skip("no CUDA device"))
        for mark in item.iter_markers("needs_real_gpu"):
            if ON is not None:
                item.add_marker(pytest.mark.skip(f"the virtual GPU has {mark.args[0]}"))


@pytest.fixture
def limit_torch():
    """Gives torch so many bytes; before and after it holds and records nothing."""
    import torch

    def as_found() -> None:
        gc.collect()
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()
        torch.cuda.memory._record_memory_history(enabled=None)
        torch.cuda.set_per_process_memory_fraction(1.0)

    as_found()
    _, total = torch.cuda.mem_get_info()
    yield lambda num_bytes: torch.cuda.set_per_process_memory_fraction(
        num_bytes / total
    )
    as_found()
