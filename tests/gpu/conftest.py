"""For tests that need a device: a real one, or the virtual one of `on_virtual.py`."""

from __future__ import annotations

import pytest

from collector.virtual.present import virtual_device

ON = virtual_device()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What the virtual GPU cannot do is skipped there, with its reason."""
    if ON is None:
        return
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        raise pytest.UsageError(f"torch finds no device on the {ON}")
    for item in items:
        for mark in item.iter_markers("needs_real_gpu"):
            item.add_marker(pytest.mark.skip(f"the virtual GPU has {mark.args[0]}"))
