"""Composer's real Trainer, profiler and names beside MemBoard's callback."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from memboard.collector.config.templates import IDENTITY, MOMENT
from tests.peers.running import needs_peers, run
from tests.tb_plugin.readers.traces.reading import names_of, read

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_peers

VARIABLES = (*IDENTITY, *MOMENT)
SECONDS = ("total_wct", "epoch_wct", "batch_wct")
CYCLES = {"skip_first": 0, "wait": 1, "warmup": 1, "active": 2, "repeat": 2}


def named(variables) -> str:
    return "_".join(f"{{{name}}}" for name in variables) + ".json"


def values_of(name: str) -> dict[str, str]:
    """By variable, of a file's name; seconds are rounded as MemBoard does."""
    texts = name.removesuffix(".json").split("_")
    values = dict(zip(VARIABLES, texts, strict=True))
    for variable in SECONDS:
        values[variable] = str(round(float(values[variable]), 3))
    return values


def trained(folder: Path, recorder: str, *, ranks: int = 1, **changed: Any) -> None:
    folder.mkdir(exist_ok=True)
    settings = {
        "recorder": recorder,
        "folder": str(folder),
        "filename": named(VARIABLES),
        "schedule": CYCLES,
        "batches": 10,
        "epochs": 2,
        "accumulate": 1,
        **changed,
    }
    run("composer_training", settings, ranks=ranks)


def saved(folder: Path, rank: int = 0) -> list[dict[str, str]]:
    """Values in the names of MemBoard's traces of a rank, in their order."""
    below = folder / "run" / "plugins" / "memboard"
    found = [values_of(path.name) for path in below.glob(f"rank{rank:05}*/*/*.json")]
    return sorted(found, key=lambda values: int(values["batch"]))


def expected(folder: Path, rank: int = 0) -> list[dict[str, str]]:
    """The same of the moments at which Composer's own schedule saves."""
    return [*map(values_of, json.loads((folder / f"names{rank}.json").read_text()))]


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"accumulate": 2, "evaluate": True, "lacking": 2},
        {"schedule": {**CYCLES, "skip_first": 2, "repeat": 0}},
        {"batches": 7, "schedule": {**CYCLES, "repeat": 0}},  # an epoch cuts a cycle
    ],
)
def test_all_variables_are_those_of_composers_own_names(tmp_path, changed):
    trained(tmp_path, "memboard", **changed)
    names = expected(tmp_path)
    assert len(names) >= 4
    assert saved(tmp_path) == names


def test_each_rank_counts_what_all_ranks_trained_on(tmp_path):
    trained(tmp_path, "memboard", ranks=2)
    for rank in (0, 1):
        assert saved(tmp_path, rank) == expected(tmp_path, rank)
    assert [values["sample"] for values in saved(tmp_path, 1)] == [
        "32",
        "64",
        "112",
        "144",
    ]


def test_a_resumed_training_goes_on_counting(tmp_path):
    saves = {"save": str(tmp_path / "checkpoints"), "save_interval": "5ba"}
    trained(tmp_path / "a", "memboard", epochs=1, **saves)
    checkpoint = tmp_path / "checkpoints" / "ep0-ba5-rank0.pt"
    trained(tmp_path / "b", "memboard", load=str(checkpoint))
    names = expected(tmp_path / "b")
    assert [values["batch"] for values in names] == ["9", "14", "18"]
    assert saved(tmp_path / "b") == names


def test_files_have_the_names_that_composers_profiler_gives(tmp_path):
    counts = [name for name in VARIABLES if name not in SECONDS]
    for recorder in ("composer", "memboard"):
        trained(tmp_path / recorder, recorder, filename=named(counts))
    theirs = [p.name for p in (tmp_path / "composer" / "torch").glob("*.json")]
    below = tmp_path / "memboard" / "run" / "plugins" / "memboard"
    ours = [p.name for p in below.glob("rank00000*/*/*.json")]
    assert len(theirs) == 4
    assert sorted(ours) == sorted(theirs)


def test_a_unified_trace_is_on_one_clock(tmp_path):
    trained(tmp_path, "composer")
    paths = sorted((tmp_path / "unified").glob("ep*-rank0.json"))
    assert len(paths) == 4
    for path in paths:
        trace = read(path)
        rows = [
            (name, int(trace.slices.start_ns[row]), int(trace.slices.duration_ns[row]))
            for row, name in enumerate(names_of(trace))
        ]
        batches = [(at, at + took) for name, at, took in rows if name == "event/batch"]
        products = [at for name, at, _ in rows if re.match("aten::(addmm|mm)$", name)]
        # Composer ends no span of the last batch, and torch profiles the last two: two
        # products forward and three backward lie in the batch before.
        begin, end = max(batches)
        assert sum(begin <= at <= end for at in products) == 5
        assert len(products) == 10
        assert (trace.end_ns - trace.start_ns) < 300e9
        assert all(problem.is_usual for problem in trace.problems)
