"""Log directories as MemProfiler leaves them, made for tests."""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from pathlib import Path

import yaml

from memboard.tb_plugin.formats.file_listing import Candidate
from memboard.tb_plugin.formats.memprofiler.imports import Imports
from memboard.tb_plugin.formats.memprofiler.listing import DumpListing
from memboard.tb_plugin.formats.memprofiler.names import parse_file_name
from tests import programs

RULE = "-" * 80

FSDP_LABELS = (
    "Sharded Param",
    "Unsharded Param",
    "Buffer",
    "Sharded Grad",
    "Unsharded Grad",
    "Activation",
    "Temp",
    "All Gather",
    "Reduce Scatter",
    "OptState",
    "Inputs",
)


def collected(rank: int, *, iterations: tuple[int, ...] = (2, 3)) -> defaultdict:
    """Snaps as MemProfiler collects them; every value tells its place."""
    stats: defaultdict = defaultdict(dict)
    for iteration in iterations:
        for side, context in enumerate(("start", "end")):
            base = 1_000_000 * rank + 1_000 * iteration + side
            stats[f"{rank}.training_step.{iteration}.{context}"].update(
                {
                    "rss_diff": 393_216 * side,
                    "npp_diff": 6_815_744 * side,
                    "rss": base + 1,
                    "vms": base + 2,
                    "allocated_bytes.all.current": base + 3,
                    "num_ooms": 0,
                }
            )
    return stats


def write_stats(
    folder: Path, rank: int = 0, *, kinds: tuple[str, ...] = ("yaml",), **options
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    stats = collected(rank, **options)
    if "yaml" in kinds:
        (folder / f"rank_{rank}_memory_stats.yaml").write_text(yaml.dump(stats))
    if "pickle" in kinds:
        path = folder / f"rank_{rank}_memory_stats.pickle"
        path.write_bytes(pickle.dumps(stats))


def sizes_of(rank: int, iteration: int, place: int) -> dict[str, int]:
    """Bytes by label at one place of a report."""
    sizes = {
        label: 4096 * (100 * rank + 10 * iteration + place + index)
        for index, label in enumerate(FSDP_LABELS)
    }
    return {**sizes, "Total": sum(sizes.values())}


def write_report(
    folder: Path, rank: int, iteration: int, function: str = "training_step"
) -> Path:
    """A report of lines: a peak, and two states of two modules."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"Iteration {iteration} {function} Peak FSDP memory stats: ", RULE]
    lines += _device(sizes_of(rank, iteration, 0))
    lines += [RULE, f"Iteration {iteration} {function} Modulewise FSDP memory stats: "]
    lines.append(RULE)
    for place, module in enumerate(("FSDPNet", "FSDPNet.layers.0"), start=1):
        lines.append(f"Module:  {module}")
        for state in ("Before Pre-Forward", "After Post-Forward"):
            lines += [state, "# 1:", *_device(sizes_of(rank, iteration, place))]
        lines.append("")
    lines += [RULE, ""]
    path = folder / f"fsdp_mem_rank_{rank}_{function}_{iteration}.log"
    path.write_text("\n".join(lines))
    return path


def _device(sizes: dict[str, int]) -> list[str]:
    return ["Device: cuda:0", *(f"\t{label}: {n} B" for label, n in sizes.items())]


def printed_by_torch(folder: Path) -> dict:
    """Have torch's own trackers print into a folder; returns what they held."""
    program = Path(__file__).with_name("torch_reports.py")
    programs.run_script(program, folder)
    return json.loads((folder / "truth.json").read_text())


def dumps_in(folder: Path, root: Path) -> DumpListing:
    """The files of a directory below a logdir, listed."""
    listing = DumpListing(folder.name, str(root))
    names = sorted(path.name for path in folder.iterdir() if parse_file_name(path.name))
    listing.put(
        str(folder),
        [Candidate(str(folder / name), f"{folder.name}/{name}") for name in names],
    )
    listing.list_files()
    return listing


def opened(folder: Path) -> Imports:
    """What the files of a directory hold."""
    imports = Imports()
    imports.update(dumps_in(folder, folder.parent).found)
    return imports
