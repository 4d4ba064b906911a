"""Out-of-memory errors of known causes, provoked on a real device: the verdict says so.

torch is given two GiB, so that each takes seconds. With MEMBOARD_GPU_OUT set, the
recordings are left there.
"""

# ruff: noqa: PT012  # what fails, and where, is what is tested

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import memboard as mb
from tests.errors_found import errors_in
from tests.gpu.conftest import GPU_OUT
from tests.tb_plugin.client import Page

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.slow

MIB = 1 << 20
LIMIT = 2 << 30
PATIENCE_S = 30.0

OTHER_PROCESS = """
import sys, torch
left = int(sys.argv[1])
free, _ = torch.cuda.mem_get_info()
held = torch.empty(free - left, dtype=torch.uint8, device="cuda")
print("held", flush=True)
sys.stdin.readline()
"""


def block(mebibytes: int):
    return torch.empty(mebibytes * MIB, dtype=torch.uint8, device="cuda")


def process_limit(rec, kept):
    """Activations of one step, larger than the limit while the device has room."""
    rec.step()
    while True:
        kept.append(block(64))


def growth(rec, kept):
    """Each step makes the same, and keeps a part of it."""
    while True:
        made = [block(48) for _ in range(6)]
        kept.append(block(96))
        del made
        rec.step()


def single_giant(rec, kept):
    """Nothing was ever as large."""
    for _ in range(4):
        kept.append(block(64))
        rec.step()
    block(1900)


def fragmented(rec, kept):
    """Large segments are cut into pieces, of which small ones stay."""
    segments = [block(600) for _ in range(3)]
    del segments
    pieces = []
    for _ in range(3):
        for _ in range(3):
            pieces.append(block(150))
            kept.append(block(40))
    del pieces
    rec.step()
    block(400)


def fitting_block_free(rec, kept):
    """What another stream used and freed would have served."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        whole = block(800)
        del whole
        buffer = block(700)
        kept.append(block(60))
        del buffer
    kept.extend(block(200) for _ in range(4))
    rec.step()
    block(600)


def verdict_of(run_dir: Path) -> dict:
    """The one error of a run, once its history was read."""
    if GPU_OUT:
        shutil.copytree(run_dir, Path(GPU_OUT, run_dir.name), dirs_exist_ok=True)
    page = Page(run_dir.parent)
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        (found,) = errors_in(page.of_run("/findings", run_dir.name))
        if found["analysed"]:
            return found
        time.sleep(0.2)
    raise AssertionError("the history was not read")


@pytest.mark.parametrize(
    "cause", [process_limit, growth, single_giant, fragmented, fitting_block_free]
)
def test_the_verdict_names_the_cause(tmp_path, cause, limit_torch):
    limit_torch(LIMIT)
    kept: list = []
    run_dir = tmp_path / f"oom-{cause.__name__}"
    with pytest.raises(torch.OutOfMemoryError), mb.record(run_dir) as rec:
        cause(rec, kept)
    kept.clear()  # a failure below would hand it to the next test
    found = verdict_of(run_dir)
    print(found["sentence"])
    assert found["key"] == cause.__name__
    assert any(cause.__name__ in frame for frame in found["stack"])


def test_memory_of_another_process_is_not_torchs(tmp_path, limit_torch):
    run_dir = tmp_path / "oom-non_torch"
    command = [sys.executable, "-c", OTHER_PROCESS, str(LIMIT)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        try:
            assert other.stdout.readline() == "held\n"
            with (
                pytest.raises(torch.OutOfMemoryError),
                mb.record(run_dir) as rec,
            ):
                kept = [block(256) for _ in range(3)]
                rec.step()
                kept.extend(block(256) for _ in range(64))
        finally:
            other.communicate("\n")
    found = verdict_of(run_dir)
    print(found["sentence"])
    assert found["key"] == "non_torch"
