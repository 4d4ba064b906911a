"""`memboard import-config` with Composer's callbacks for memory and speed."""

from __future__ import annotations

import pytest
import yaml

from memboard.collector.config import load
from memboard.tb_plugin.cli import main

MAPPING = """\
model: {name: mpt}
callbacks:
  lr_monitor: {}
  memory_monitor: {dist_aggregate_batch_interval: 10}
  memory_snapshot: {skip_batches: 3, interval: 4ba, max_entries: 5000}
  oom_observer:
  speed_monitor: {window_size: 10, gpu_flops_available: 3.12e14}
"""

LISTED = """\
trainer:
  callbacks:
    - memory_monitor: {memory_keys: {num_ooms: ooms}}
    - oom_observer
    - class_path: lightning.pytorch.callbacks.LearningRateMonitor
"""

PROGRAM = """\
from composer import Trainer
from composer.callbacks import LRMonitor, MemoryMonitor
import composer.callbacks as c

trainer = Trainer(
    model=net,
    callbacks=[
        LRMonitor(),
        MemoryMonitor(None, EVERY),
        c.MemorySnapshot(interval="2ep"),
        c.SpeedMonitor(**speed),
    ],
)
"""


def imported(tmp_path, capsys, text, name="theirs.yaml"):
    """Our settings as `load` has them, the plain YAML, and the list of keys."""
    path = tmp_path / name
    path.write_text(text)
    assert main(["import-config", str(path)]) == 0
    said = capsys.readouterr()
    plain = yaml.safe_load(said.out)
    return load(plain), plain, said.err.splitlines()


def test_callbacks_by_their_names(tmp_path, capsys):
    ours, plain, said = imported(tmp_path, capsys, MAPPING)
    assert ours.scalars == "composer"
    assert ours.history.enabled
    assert ours.history.max_entries == 5000
    assert (ours.schedule.warmup, ours.schedule.active) == (3, 4)
    assert ours.flops.device_peak == 3.12e14
    assert set(plain) == {"scalars", "history", "schedule", "flops"}
    said = "\n".join(said)
    assert (
        "memory_monitor.dist_aggregate_batch_interval: 10 -> nothing: no _avg" in said
    )
    assert "oom_observer: {} -> nothing: out-of-memory errors are reported" in said
    assert said.endswith("left out: lr_monitor")


def test_callbacks_in_a_list(tmp_path, capsys):
    _, plain, said = imported(tmp_path, capsys, LISTED)
    assert plain == {"scalars": "composer"}
    assert [line.partition(" -> ")[0] for line in said] == [
        "memory_monitor: {}",
        "memory_monitor.memory_keys: {num_ooms: ooms}",
        "oom_observer: {}",
    ]


def test_callbacks_that_a_program_makes(tmp_path, capsys):
    ours, plain, said = imported(tmp_path, capsys, PROGRAM, "train.py")
    assert plain == {
        "scalars": "composer",
        "history": {"enabled": True},
        "schedule": {"warmup": 1},
    }
    assert ours.history.enabled
    said = "\n".join(said)
    assert (
        "MemoryMonitor.dist_aggregate_batch_interval: EVERY -> nothing: the program makes"
        " it (EVERY)" in said
    )
    assert "set schedule.active yourself" in said
    assert (
        "SpeedMonitor.gpu_flops_available: **speed -> nothing: the program makes it"
        " (**speed); set flops.device_peak yourself" in said
    )


def test_callbacks_that_memboard_leaves_to_composer_are_named(tmp_path, capsys):
    text = "callbacks: {memory_monitor: {}, runtime_estimator: {}, generate: {}}"
    _, plain, said = imported(tmp_path, capsys, text)
    assert plain == {"scalars": "composer"}
    assert "runtime_estimator: {} -> nothing: MemBoard estimates no remaining time" in (
        "\n".join(said)
    )
    assert said[-1].endswith("left out: generate")


def test_a_profilers_schedule_wins_over_a_snapshots(tmp_path, capsys):
    both = MAPPING + "profiler: {schedule: {warmup: 2, active: 1}}\n"
    ours, _, said = imported(tmp_path, capsys, both)
    assert (ours.schedule.warmup, ours.schedule.active) == (2, 1)
    assert ours.scalars == "composer"
    assert {
        "Composer's callbacks for memory and speed:",
        "Composer's profiler:",
    } <= set(said)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("callbacks: {memory_monitor: {memory_key: 1}}", "did you mean 'memory_keys'?"),
        ("callbacks:\n  oom_observer: 7\n", "line 2"),
        ("callbacks: {memory_snapshot: {skip_batches: -1}}", "from 0 up"),
        ("callbacks: {lr_monitor: {}}", "there is nothing to import"),
        ("callbacks: {memory_monitor: [1]}", "must hold keys and values"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, capsys, text, told):
    path = tmp_path / "theirs.yaml"
    path.write_text(text)
    assert main(["import-config", str(path)]) == 2
    assert told in " ".join(capsys.readouterr().err.split())
