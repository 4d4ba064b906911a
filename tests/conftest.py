"""For all tests: nothing of the caller's environment reaches what is tested."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest

PATIENCE = str(Path(__file__).parent / "patience")
"""Belongs to a PYTHONPATH: processes with it give nothing up because it is slow."""

E2E = "tests/e2e/"
LONGEST = (E2E, "tests/virtual/")


def pytest_configure() -> None:
    """What the programs that tests start are to inherit."""
    # A shell's background jobs ignore Ctrl-C, and so would they.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["PYTHONPATH"] = with_patience(os.environ.get("PYTHONPATH", ""))


def with_patience(*paths: str) -> str:
    """A PYTHONPATH of these and `PATIENCE`."""
    others = (entry for path in paths for entry in path.split(os.pathsep))
    return os.pathsep.join([PATIENCE, *(p for p in others if p not in ("", PATIENCE))])


def pytest_collection_modifyitems(items) -> None:
    """What takes longest begins first, so that no worker is left with it at the end."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Each file's tests, and all of `e2e`, are one worker's: what they share is made once."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return E2E if nodeid.startswith(E2E) else super()._split_scope(nodeid)

    return Scheduling(config, log)


def pytest_collection_finish() -> None:
    """Tests read `MEMBOARD_REAL_DATA` while they are collected, which is before."""
    for name in [name for name in os.environ if name.startswith("MEMBOARD_")]:
        if not name.startswith("MEMBOARD_VIRTUAL_"):  # the device the tests run on
            del os.environ[name]
    gc.collect()
    gc.freeze()  # thousands of tests and what they import: garbage is looked for elsewhere


@pytest.fixture
def no_garbage():
    """Garbage is collected where the test says so: that of other tests stays meanwhile."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="session")
def fsdp_on_cpu():
    """Skips where torch's FSDP2 cannot train on a CPU, as in 2.6."""
    torch = pytest.importorskip("torch")
    if not hasattr(torch.cpu.Stream, "record_event"):
        pytest.skip(f"FSDP2 of torch {torch.__version__} trains on GPUs only")


@pytest.fixture(scope="session")
def countable_activations():
    """Skips where torch does not say which saved-tensor hooks there are, as 2.6 does not."""
    torch = pytest.importorskip("torch")
    if not hasattr(torch._C._autograd, "_top_saved_tensors_default_hooks"):
        pytest.skip(f"torch {torch.__version__} does not show its saved-tensor hooks")
