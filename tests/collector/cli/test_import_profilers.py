"""`memboard import-config` with Composer's arguments and Lightning's."""

from __future__ import annotations

import pytest
import yaml

from memboard.collector.config import load
from memboard.collector.errors import ConfigError
from memboard.tb_plugin.cli import main

PROFILER = """\
model: {name: mpt}
profiler:
  schedule: {skip_first: 1, wait: 2, active: 3, repeat: 0}
  json_trace_handler: {folder: traces}
  torch_prof_folder: "{run_name}/profiles"
  torch_prof_use_gzip: true
  torch_prof_remote_file_name: s3://bkt/{run_name}/rank{rank}.{batch}.json.gz
  torch_prof_with_stack: true
  torch_prof_num_traces_to_keep: 2
  sys_prof_memory: true
  sys_prof_stats_thread_interval_seconds: 5
"""

OLD_TRAINER = """\
trainer:
  prof_skip_first: 1
  prof_wait: 2
  prof_warmup: 1
  prof_active: 3
  prof_repeat: 0
  torch_prof_record_shapes: true
  torch_trace_dir: profiles
  profiler_trace_file: events.json
  max_duration: 1ep
"""

PROGRAM = """\
from composer import Trainer
from composer.profiler import *
import composer.profiler as p

WAIT = 2
profiler = p.Profiler(
    schedule=cyclic_schedule(1, wait=WAIT, active=3),
    trace_handlers=[JSONTraceHandler(merged_trace_filename=None)],
    torch_prof_with_stack=True,
    torch_prof_folder="{run_name}/profiles",
)
Trainer(model=net, max_duration="1ep", profiler=profiler)
"""

LIGHTNING = """\
trainer:
  profiler:
    class_path: fts_examples.profiling.extended_profiler.ExtendedPyTorchProfiler
    init_args:
      filename: fit
      sort_by_key: cuda_time_total
      schedule_cfg: {skip_first: 20, wait: 1, warmup: 2, active: 1}
    dict_kwargs:
      with_stack: true
      export_to_flame_graph: true
      metric: self_cuda_time_total
"""


def imported(tmp_path, capsys, text, name="theirs.yaml"):
    """Our settings as `load` has them, the plain YAML, and the list of keys."""
    path = tmp_path / name
    path.write_text(text)
    assert main(["import-config", str(path)]) == 0
    said = capsys.readouterr()
    plain = yaml.safe_load(said.out)
    return load(plain), plain, said.err.splitlines()


def test_the_profiler_of_a_composer_yaml(tmp_path, capsys):
    ours, plain, said = imported(tmp_path, capsys, PROFILER)
    schedule, profiler = ours.schedule, ours.torch_profiler
    assert (schedule.skip_first, schedule.wait, schedule.warmup) == (1, 2, 1)
    assert (schedule.active, schedule.repeat, schedule.per_epoch) == (3, 0, True)
    assert profiler.enabled
    assert profiler.folder == "{run_name}/profiles"
    assert profiler.filename == "rank{rank}.{batch}.pt.trace.json.gz"
    assert (profiler.with_stack, profiler.num_traces_to_keep) == (True, 2)
    assert ours.merge_on_close
    assert (ours.host, ours.process, ours.gpu) == (5, 5, 5)
    assert plain["remote"] == {
        "url": "s3://bkt",
        "traces": "{run_name}/rank{rank}.{batch}.json.gz",
    }
    assert "sys_prof_memory: true -> nothing: sensors are sampled by default" in said


def test_the_trainers_old_arguments(tmp_path, capsys):
    ours, plain, said = imported(tmp_path, capsys, OLD_TRAINER)
    assert (ours.schedule.skip_first, ours.schedule.wait) == (1, 2)
    assert (ours.schedule.active, ours.schedule.repeat) == (3, 0)
    assert ours.torch_profiler.record_shapes
    assert ours.torch_profiler.folder == "profiles"
    assert not ours.merge_on_close
    assert "remote" not in plain
    assert any(line.startswith("profiler_trace_file: ") for line in said)


def test_the_calls_of_a_program(tmp_path, capsys):
    ours, _, said = imported(tmp_path, capsys, PROGRAM, "train.py")
    assert (ours.schedule.skip_first, ours.schedule.active) == (1, 3)
    assert ours.schedule.repeat == 1
    assert ours.schedule.per_epoch
    assert not ours.merge_on_close
    assert ours.torch_profiler.with_stack
    assert ours.torch_profiler.folder == "{run_name}/profiles"
    (wait,) = (line for line in said if line.startswith("schedule.wait"))
    assert "the program makes it (WAIT); set schedule.wait yourself" in wait


def test_the_profiler_of_a_lightning_yaml(tmp_path, capsys):
    ours, _, said = imported(tmp_path, capsys, LIGHTNING)
    assert (ours.schedule.skip_first, ours.schedule.warmup) == (20, 2)
    assert not ours.schedule.per_epoch
    profiler = ours.torch_profiler
    assert profiler.filename == "fit-rank{rank}.{batch}.pt.trace.json"
    assert profiler.with_stack
    assert (profiler.stacks_filename, profiler.stacks_metric) == (
        "rank{rank}.{batch}.stacks",
        "self_device",
    )
    assert any(line.startswith("sort_by_key: ") for line in said)


def test_a_profiler_beside_memprofilers_settings(tmp_path, capsys):
    both = LIGHTNING + "model:\n  memprofiler_cfg: {enabled: true}\n"
    ours, _, said = imported(tmp_path, capsys, both)
    assert ours.functions.enabled
    assert ours.torch_profiler.with_stack
    assert ours.schedule.warmup == 1, "MemProfiler's own schedule, which it always has"
    assert {"memprofiler_cfg:", "Lightning's PyTorchProfiler:"} <= set(said)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "profiler: {torch_prof_use_gzipp: true}",
            "did you mean 'torch_prof_use_gzip'?",
        ),
        ("profiler: {schedule: {activ: 2}}", "did you mean 'schedule.active'?"),
        ("profiler: {schedule: {active: -1}}", "'schedule.active'"),
        ("profiler: {torch_prof_with_stack: 3}", "'torch_prof_with_stack'"),
        ("profiler:\n  trace_handlers: []\n  schedule: 7\n", "line 3"),
        (
            "a:\n  class_path: PyTorchProfiler\n  init_args: 7\n",
            "line 3 must hold keys and values",
        ),
        ("a: &a {b: *a}", "there is nothing to import"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, capsys, text, told):
    path = tmp_path / "theirs.yaml"
    path.write_text(text)
    assert main(["import-config", str(path)]) == 2
    assert told in " ".join(capsys.readouterr().err.split())


def test_arguments_that_a_program_unpacks_are_not_their_defaults(tmp_path, capsys):
    program = """
Profiler(
    schedule=cyclic_schedule(active=3, **cycle),
    torch_prof_with_stack=True,
    **{**a, "b": 1},
)
"""
    _, plain, said = imported(tmp_path, capsys, program, "train.py")
    assert plain == {
        "schedule": {"active": 3},
        "torch_profiler": {"with_stack": True},
    }
    assert (
        "schedule.wait: **cycle -> nothing: the program makes it (**cycle); set"
        " schedule.wait yourself"
    ) in said
    assert any(
        line.startswith("torch_prof_folder: **{**a, 'b': 1} -> nothing")
        for line in said
    )


def test_a_program_that_cannot_be_read(tmp_path, capsys):
    path = tmp_path / "train.py"
    path.write_text("def :")
    assert main(["import-config", str(path)]) == 2
    assert "is no Python source" in capsys.readouterr().err
    folder = tmp_path / "folder.py"
    folder.mkdir()
    assert main(["import-config", str(folder)]) == 2
    assert "cannot be read: Is a directory" in capsys.readouterr().err


def test_a_program_in_another_encoding(tmp_path, capsys):
    path = tmp_path / "train.py"
    path.write_bytes(
        b"# coding: latin-1\n# \xe9\nProfiler(torch_prof_with_stack=True)\n"
    )
    assert main(["import-config", str(path)]) == 0
    assert "with_stack: true" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("section", "key", "told"),
    [
        ("torch_profiler", "use_gzip", "ends in .gz"),
        ("torch_profiler", "remote_file_name", "remote.url"),
        ("schedule", "max_iter", "schedule.active"),
        ("torch_profiler", "record_shape", "'torch_profiler.record_shapes'"),
    ],
)
def test_a_key_of_theirs_among_ours_is_told_its_name_here(section, key, told):
    with pytest.raises(ConfigError, match="unknown key") as refused:
        load({section: {key: 1}})
    assert told in str(refused.value)
