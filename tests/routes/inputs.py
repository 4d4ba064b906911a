"""Inputs of the plugin: each is made the same again, in any folder."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.kineto_files import KinetoFile, trained
from tests.made_snapshots import everything
from tests.memprofiler_files import write_report, write_stats
from tests.oom_cases.cases import make
from tests.oom_cases.dump import write
from tests.routes.asking import command

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
VIRTUAL = HERE.parent / "virtual" / "recorded"
REAL = Path(os.environ.get("MEMBOARD_REAL_DATA", "missing"))
WRITTEN_S = 1_780_000_000
"""When all files were last written: nothing is live."""
VIRTUAL_S = 1_795_405_260
"""Likewise, of the recording: soon after it ended."""

REAL_SNAPSHOTS = {
    "oom": "Yiyi-philosophy+LLM-inference__oom_snapshot.pickle",
    "adam": "a0kuma+pytorchMemoryViz__tests__gpu_memory_snapshot-adam.pickle",
    "layout": "Muduard+LayoutEditing__memory_snapshot.pkl",
    "cognito": "CognitoBlocks+BlockZero__cuda_snapshot.pickle",
    "empty": "SunnySood80+unsupervised_finetune_resnet50__dump_snapshot.pickle",
    "by_hand": "drisspg+transformer_nuggets__test__data__mini_snapshot.pickle",
}
REAL_TRACES = (
    "hta_nccl_two_ranks_sampled",
    "hta_simple_add",
    "hta_amd_rocm62",
    "hta_triton",
    "torch213_cpu_transformer",
    "torch213_export_memory_timeline",
)


@dataclass(frozen=True)
class Input:
    """A logdir."""

    fill: Callable[[Path], None]
    needs: Path | None = None
    """Outside the repository: skipped where it is missing."""
    written_s: int = WRITTEN_S

    def make(self, logdir: Path) -> None:
        """Fill an empty folder."""
        if self.needs is not None and not self.needs.is_dir():
            pytest.skip("MEMBOARD_REAL_DATA does not name the recorded inputs")
        self.fill(logdir)
        for path in logdir.rglob("*"):
            os.utime(path, (self.written_s, self.written_s))


def _simulated(num_ranks: int, num_steps: int) -> Callable[[Path], None]:
    def fill(logdir: Path) -> None:
        sizes = ("--simulate", str(num_ranks), "--steps", str(num_steps))
        said = command("demo", "--no-serve", *sizes, "--out", str(logdir))
        assert said["code"] == 0, said

    return fill


def _snapshots(logdir: Path) -> None:
    """Two of torch on a virtual GPU, two of a model of the allocator, one of all keys."""
    for name in ("torch2.13_training", "torch2.15_expandable"):
        folder = logdir / name.replace(".", "_")
        folder.mkdir()
        shutil.copy(VIRTUAL / f"{name}.pickle.gz", folder)
    for kind, seed in (("leak_losses", 2), ("fragmented", 1)):
        (logdir / kind).mkdir()
        write(make(kind, seed).snapshot, logdir / kind / "snapshot.pickle.gz")
    (logdir / "every_key").mkdir()
    write(everything(), logdir / "every_key" / "snapshot.pickle")
    (logdir / "cut_short").mkdir()
    whole = logdir / "leak_losses" / "snapshot.pickle.gz"
    (logdir / "cut_short" / "snapshot.pickle.gz").write_bytes(whole.read_bytes()[:9000])


def _traces(logdir: Path) -> None:
    """One rank, two that wait, two profiling cycles, no device, much memory, damage."""
    trained().write(logdir / "one" / "host_1.1700000000000000000.pt.trace.json")
    for rank, wait_us in enumerate((0.0, 180.0)):
        name = f"host_{rank}.1700000000000000000.pt.trace.json.gz"
        trained(rank, 2, wait_us).write(logdir / "waiting" / name)
    for cycle in (1, 2):
        name = f"host_1.170000000000000000{cycle}.pt.trace.json"
        trained(wait_us=100.0 * cycle).write(logdir / "cycles" / name)
    _host_alone().write(logdir / "host" / "host_1.1700000000000000000.pt.trace.json")
    whole = logdir / "one" / "host_1.1700000000000000000.pt.trace.json"
    (logdir / "cut_short").mkdir()
    cut = logdir / "cut_short" / whole.name
    cut.write_bytes(whole.read_bytes()[:-900])


def _host_alone() -> KinetoFile:
    """A training on the processor: modules, stacks of Python, memory, no device."""
    made = KinetoFile()
    allocated, address = 0, 4096
    for number in range(4):
        at = 5_000 * number
        made.step(number, at, 4_900)
        for layer in range(3):
            start = at + 100 + 700 * layer
            module = {"Python id": 3 * number + layer, "Python module id": layer}
            made.slice(
                f"nn.Module: Linear_{layer}", start, 600, "python_function", **module
            )
            call = {"Input Dims": [[64, 64], [64, 64]], "Sequence number": layer}
            made.slice("aten::linear", start + 20, 500, **call)
            made.slice("aten::addmm", start + 60, 400, **call)
            allocated += 1 << 20
            address += 1 << 20
            made.memory(start + 100, 1 << 20, address, allocated, device=-1)
        made.slice(
            "autograd::engine::evaluate_function: AddmmBackward0", at + 2_500, 900
        )
        made.slice("aten::mm", at + 2_600, 700)
        for layer in range(3):
            allocated -= 1 << 20
            made.memory(
                at + 3_400, -(1 << 20), address - layer * (1 << 20), allocated, -1
            )
        made.slice("Optimizer.step#SGD.step", at + 3_600, 800, "user_annotation")
        made.slice("aten::add_", at + 3_700, 300)
    return made


def _virtual(logdir: Path) -> None:
    """What `record_virtual` recorded."""
    shutil.unpack_archive(HERE / "recorded" / "virtual.zip", logdir / "virtual")


def _memprofiler(logdir: Path) -> None:
    folder = logdir / "memprofiler" / "memprofiler"  # the second one is its own
    for rank in (0, 1):
        write_stats(folder, rank, kinds=("pickle",))
        for iteration in (2, 3):
            write_report(folder, rank, iteration)


def _real_snapshots(logdir: Path) -> None:
    for name, file in REAL_SNAPSHOTS.items():
        (logdir / name).mkdir()
        shutil.copyfile(REAL / "snapshots" / file, logdir / name / "snapshot.pickle")


def _real_traces(logdir: Path) -> None:
    for name in REAL_TRACES:
        beside = shutil.ignore_patterns("expected.json", "*.md")
        shutil.copytree(REAL / "kineto" / name, logdir / name, ignore=beside)
    for path in logdir.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


INPUTS = {
    "demo": Input(_simulated(4, 60)),
    "sixteen": Input(_simulated(16, 30)),
    "snapshots": Input(_snapshots),
    "traces": Input(_traces),
    "memprofiler": Input(_memprofiler),
    "virtual": Input(_virtual, written_s=VIRTUAL_S),
    "real_snapshots": Input(_real_snapshots, REAL / "snapshots"),
    "real_traces": Input(_real_traces, REAL / "kineto"),
}
