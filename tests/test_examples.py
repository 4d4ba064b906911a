"""Each example runs as a user runs it, and its recording holds what it claims."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from memboard.collector.config import RecordConfig, load
from memboard.collector.config.table import defaults
from tests import programs
from tests.recordings import Recording, read_run

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py"))


TORCHRUN = ("--standalone", "--nproc-per-node=2")
HELP = """
import contextlib, io, json, pathlib, runpy, sys
said = {}
for path in pathlib.Path(sys.argv[1]).glob("*.py"):
    sys.argv[:] = [str(path), "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        with contextlib.suppress(SystemExit):
            runpy.run_path(str(path), run_name="__main__")
    said[path.name] = printed.getvalue()
print(json.dumps(said))
"""


def environment() -> dict[str, str]:
    # Looked at often: on a fast machine an example is over before the second look.
    return {**os.environ, "OMP_NUM_THREADS": "1", "MEMBOARD_PROCESS": "0.1"}


def run_example(name: str, *arguments: str) -> str:
    """Run an example in a process of its own; returns what it printed."""
    done = programs.run_script(EXAMPLES / name, *arguments, env=environment())
    return done.stdout


@pytest.fixture
def run_on_two_ranks(forking_python):
    """Runs an example under torchrun, which forks its ranks."""

    def run(name: str, *arguments: str) -> None:
        programs.run(
            "import runpy; runpy.run_module('torch.distributed.run', None, '__main__')",
            *TORCHRUN,
            EXAMPLES / name,
            *arguments,
            env={**environment(), "PYTHON_EXEC": str(forking_python)},
        )

    return run


def only_run(logdir: Path) -> dict[int, Recording]:
    (run_dir,) = logdir.iterdir()
    assert len(list(logdir.rglob("*tfevents*"))) == 1
    return read_run(run_dir)


def test_the_examples_are_those_the_readme_promises():
    assert SCRIPTS == [
        "dataloader_bound.py",
        "fsdp2.py",
        "lightning_trainer.py",
        "oom.py",
        "plain_loop.py",
        "profiled_functions.py",
        "transformers_trainer.py",
    ]


def test_help_says_how_to_run_and_look():
    said = json.loads(programs.run(HELP, EXAMPLES).stdout)
    assert sorted(said) == SCRIPTS
    for name, words in said.items():
        assert f"examples/{name}" in words
        assert "tensorboard --logdir" in words, name


def test_the_plain_loop_is_recorded_step_by_step(tmp_path):
    run_example("plain_loop.py", "--logdir", str(tmp_path), "--steps", "30")
    recording = only_run(tmp_path)[0]
    assert recording.close is not None
    assert recording.close.how == "closed"
    assert recording.steps["step"].tolist() == list(range(30))
    assert recording.steps["rss_bytes"].min() > 50 << 20
    assert (recording.steps["step_time_seconds"][1:] > 0).all()
    assert not recording.header.simulated
    assert recording.sources()["rss"] == "recorded"


def test_running_out_of_memory_leaves_its_report(tmp_path):
    said = run_example("oom.py", "--logdir", str(tmp_path), "--steps", "3")
    assert "ran out of memory" in said
    recording = only_run(tmp_path)[0]
    (report,) = [c for c in recording.captures if c.kind == "oom"]
    assert report.meta["is_out_of_memory"]
    assert report.function == "forward"
    assert report.meta["requested_bytes"] >= 1 << 30
    assert recording.close.how == "exception"


def test_the_plain_loop_needs_three_lines():
    source = (EXAMPLES / "plain_loop.py").read_text()
    ours = [
        line
        for line in source.splitlines()
        if "memboard as" in line or "mb." in line or "rec." in line
    ]
    assert [line.rsplit("# ")[-1] for line in ours] == ["line 1", "line 2", "line 3"]


def test_fsdp2_records_every_rank_of_a_torchrun_job(
    fsdp_on_cpu, run_on_two_ranks, tmp_path
):
    run_on_two_ranks("fsdp2.py", "--logdir", str(tmp_path), "--steps", "6")
    ranks = only_run(tmp_path)
    assert sorted(ranks) == [0, 1]
    for rank, recording in ranks.items():
        assert recording.header.world_size == 2
        assert recording.header.job == ranks[0].header.job != ""
        mesh = recording.notes_of("mesh")[-1].data
        assert dict(mesh) == {"dp": rank}
        assert recording.steps["step"].tolist() == list(range(6))
        assert recording.steps["samples"].tolist() == [8 * n for n in range(1, 7)]
        assert (np.diff(recording.steps["tokens"]) == 8 * 64).all()
        assert recording.close is not None


def test_fsdp2_runs_without_torchrun_too(fsdp_on_cpu, tmp_path):
    run_example("fsdp2.py", "--logdir", str(tmp_path), "--steps", "2")
    ranks = only_run(tmp_path)
    assert list(ranks) == [0]
    assert ranks[0].header.world_size == 1


def test_profiled_functions_are_collected_on_every_rank(
    fsdp_on_cpu, run_on_two_ranks, tmp_path
):
    run_on_two_ranks("profiled_functions.py", "--logdir", str(tmp_path))
    ranks = only_run(tmp_path)
    assert sorted(ranks) == [0, 1]
    for recording in ranks.values():
        snaps = recording.tables["function/training_step"]
        assert snaps["iteration"].tolist() == [3, 3, 4, 4]
        assert snaps["context"].tolist() == [0, 1, 0, 1]
        kinds = [(c.kind, c.function, c.phase, c.iteration) for c in recording.captures]
        for kind in ("hooks", "activations"):
            for function, phase in (
                ("training_step", "train"),
                ("step", "train"),
                ("evaluate", "val"),
            ):
                assert {(kind, function, phase, n) for n in (3, 4)} <= set(kinds)
        modules = [c for c in recording.captures if c.kind == "modules"]
        assert [(c.function, c.iteration) for c in modules] == [
            ("step", 3),
            ("step", 4),
        ]
        assert modules[0].meta["backend"] == "fsdp2"
        saved = {
            c.phase: c.meta["bytes"]
            for c in recording.captures
            if c.kind == "activations"
        }
        assert saved["train"] > 1 << 20
        assert saved["val"] == 0
        assert not [n for n, s in recording.sources().items() if s == "failed"]


def test_the_yaml_is_every_setting_with_its_default_and_meaning():
    path = EXAMPLES / "fsdp2.yaml"
    assert path.read_text() == defaults(), (
        "python -m memboard.collector.config.table --yaml"
    )
    assert load(path) == RecordConfig()


def test_the_dataloader_example_shows_its_workers_memory(tmp_path):
    run_example(
        "dataloader_bound.py",
        "--logdir",
        str(tmp_path),
        "--images",
        "48",
        "--workers",
        "2",
        "--epochs",
        "6",  # all is decoded in the first: the others give time to see
    )
    recording = only_run(tmp_path)[0]
    (note,) = recording.notes_of("loader")
    assert note.data["num_workers"] == 2
    epochs = [n.data["epoch"] for n in recording.notes_of("epoch")]
    assert epochs == list(range(6))
    assert recording.notes_of("epoch")[0].data["length"] == 12
    assert len(recording.steps["step"]) == 6 * 12
    assert recording.steps["samples"][-1] == 6 * 48
    assert {schema.phase for schema in recording.schemas.values()} == {"train", "val"}
    workers = recording.tables["workers"]
    assert workers["num_workers"].max() == 2
    # Each of 48 images stays as 8 MiB in the worker that decoded it.
    assert workers["workers_rss_bytes"].max() > 48 * 8 << 20


def test_the_lightning_example_records_by_its_callback_alone(tmp_path):
    run_example("lightning_trainer.py", "--logdir", str(tmp_path), "--epochs", "2")
    (recording,) = read_run(tmp_path / "autoencoder" / "version_0").values()
    assert recording.close is not None
    assert recording.steps["step"].tolist() == list(range(2 * 16))
    assert recording.steps["samples"].tolist() == [16 * n for n in range(1, 33)]
    phases = {schema.phase for schema in recording.schemas.values()}
    assert {"train", "val", "sanity"} <= phases


def test_the_transformers_example_records_by_its_callback_alone(tmp_path):
    run_example("transformers_trainer.py", "--logdir", str(tmp_path), "--steps", "6")
    recording = only_run(tmp_path)[0]
    assert recording.close is not None
    assert recording.steps["step"].tolist() == list(range(1, 7))
    assert (np.diff(recording.steps["tokens"]) == 8 * 64).all()
    assert {"train", "val"} <= {schema.phase for schema in recording.schemas.values()}
