"""For all tests: nothing of the caller's environment reaches what is tested."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter

import pytest

from tests.programs import python_that_forks

E2E = "tests/e2e/"
LONGEST = (E2E, "tests/virtual/", "tests/test_docs_blocks.py", "tests/test_examples.py")
NUM_SLOWEST = 15
DEMO = """
import sys
from memboard.collector.cli.demo import launch
python, own_module = sys.argv[1], launch.own_module
launch.own_module = lambda *words: [python, *own_module(*words)[1:]]
sys.argv[1:2] = ["demo"]
from memboard.tb_plugin.cli import main
sys.exit(main())
"""
"""The demo, whose ranks another Python runs."""

_seconds: Counter[str] = Counter()
"""By file, of all tests that have run."""


def pytest_configure() -> None:
    """What the programs that tests start are to inherit."""
    # A shell's background jobs ignore Ctrl-C, and so would they.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items) -> None:
    """What takes longest begins first, so that no worker is left with it at the end."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


def pytest_runtest_logreport(report) -> None:
    """Add up what files take, with what a test waits for before and after it."""
    _seconds[report.nodeid.partition("::")[0]] += report.duration


def pytest_terminal_summary(terminalreporter) -> None:
    """Say which files took longest, where there are many."""
    if len(_seconds) > NUM_SLOWEST:
        terminalreporter.section(f"{NUM_SLOWEST} slowest of {len(_seconds)} files")
        for path, seconds in _seconds.most_common(NUM_SLOWEST):
            terminalreporter.line(f"{seconds:6.1f} s  {path}")


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
    gc.freeze()  # a second for each collection, after thousands of tests
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="session")
def forking_python(tmp_path_factory):
    """A command that runs what Python would, in a fork of a process with torch."""
    return python_that_forks(tmp_path_factory.mktemp("bin") / "python")


@pytest.fixture(scope="session")
def forked_demo(forking_python):
    """Starts a demo that has imported torch already, as have its ranks."""
    return (forking_python, "-u", "-c", DEMO, forking_python)


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
