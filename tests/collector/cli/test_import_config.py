"""`memboard import-config`: what is printed, what is written, what is refused."""

from __future__ import annotations

import pytest
import yaml

from memboard.collector.config import load
from memboard.tb_plugin.cli import main

DEMO = """\
trainer.profiler: pytorch_profiler.yaml
memprofiler_cfg:
  enabled: true
  cuda_allocator_history: true
  track_fsdp_mem: true
  fsdp_mem_track_module_depth: 3
  schedule: {warmup_iters: 2, max_iter: 4}
"""


@pytest.fixture
def demo(tmp_path):
    path = tmp_path / "demo.yaml"
    path.write_text(DEMO)
    return path


def test_writes_settings_that_mean_the_same_as_the_file(demo, tmp_path, capsys):
    out = tmp_path / "ours.yaml"
    assert main(["import-config", str(demo), "-o", str(out)]) == 0
    assert load(out) == load(demo)
    assert "memprofiler_cfg" not in yaml.safe_load(out.read_text())
    said = capsys.readouterr().out.splitlines()
    assert any(
        line.startswith("schedule.max_iter: 4 -> schedule.active: 2") for line in said
    ), "every key is accounted for"
    assert said[-2] == "not of memprofiler_cfg, left out: trainer.profiler"
    assert said[-1] == f"written to {out}"
    depth = next(line for line in said if "module_depth" in line)
    assert "-> modules.table_depth: 3 (rank_R_modules.csv has modules of" in depth
    text = out.read_text()
    assert "# memprofiler_cfg.track_fsdp_mem: FSDP and plain modules, and all" in text
    assert "dumps: [history, modules, yaml]" in text
    assert max(map(len, text.splitlines())) <= 88


def test_without_a_file_the_settings_alone_go_to_standard_output(demo, capsys):
    assert main(["import-config", str(demo)]) == 0
    said = capsys.readouterr()
    assert load(yaml.safe_load(said.out)) == load(demo)
    assert "enabled: true -> functions.enabled: true" in said.err


def test_our_own_keys_beside_it_are_kept(tmp_path, capsys):
    path = tmp_path / "both.yaml"
    path.write_text(
        "memprofiler_cfg: {enabled: true}\nhost: 5\nscalars: false\n"
        "schedule: {active: 9}\n"
    )
    assert main(["import-config", str(path)]) == 0
    text = capsys.readouterr().out
    assert "memprofiler_cfg.schedule.warmup_iters" in text
    assert "memprofiler_cfg.schedule.max_iter" not in text, "it is not from there"
    config = load(yaml.safe_load(text))
    assert config == load(path)
    assert config.host == 5.0
    assert not config.scalars


def test_a_file_that_is_there_is_not_lost(demo, tmp_path, capsys):
    assert main(["import-config", str(demo), "-o", str(demo)]) == 2
    assert "there already" in capsys.readouterr().err
    assert demo.read_text() == DEMO
    out = tmp_path / "ours.yaml"
    out.write_text("old")
    assert main(["import-config", str(demo), "-o", str(out), "--force"]) == 0
    assert load(out) == load(demo)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("flush_seconds: 2\n", "there is nothing to import"),
        ("memprofiler_cfg: {enable: true}\n", "did you mean 'enabled'?"),
        ("memprofiler_cfg: [", "is not valid YAML"),
        (
            "memprofiler_cfg: {schedule: {warmup_iters: 3, max_iter: 2}}\n",
            "no call would ever be collected",
        ),
    ],
)
def test_what_cannot_be_imported_is_said_without_a_traceback(
    tmp_path, capsys, text, words
):
    path, out = tmp_path / "bad.yaml", tmp_path / "out.yaml"
    path.write_text(text)
    assert main(["import-config", str(path), "-o", str(out)]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert str(path) in said
    assert "Traceback" not in said
    assert not out.exists()


def test_an_unwritable_place(demo, tmp_path, capsys):
    assert main(["import-config", str(demo), "-o", str(tmp_path / "no" / "x")]) == 2
    assert "No such file or directory" in capsys.readouterr().err
    assert main(["import-config", str(tmp_path / "none.yaml")]) == 2
    assert "there is no such file" in capsys.readouterr().err
