"""A run of a virtual GPU says so wherever it is reported."""

from __future__ import annotations

import json

import pytest

import collector
from tb_plugin.cli import main

SPEC = "label=virtual H100 80GB;name=NVIDIA H100 80GB HBM3;memory=85899345920"


@pytest.fixture
def logdir(tmp_path, monkeypatch, caplog):
    """A run as a process with that environment records it."""
    monkeypatch.setenv("MEMBOARD_VIRTUAL_GPU", SPEC)
    caplog.set_level("WARNING", "memboard")
    with collector.record(tmp_path / "predicted", device="off") as rec:
        rec.step()
    assert "MEMBOARD_VIRTUAL_GPU" not in caplog.text, "it is no setting"
    monkeypatch.delenv("MEMBOARD_VIRTUAL_GPU")
    with collector.record(tmp_path / "real", device="off") as rec:
        rec.step()
    return tmp_path


def printed(capsys, *words) -> str:
    assert main(["report", *map(str, words)]) == 0
    return capsys.readouterr().out


def test_text_markdown_and_json_name_the_virtual_device(logdir, capsys):
    text = printed(capsys, logdir)
    assert "predicted (virtual H100 80GB)" in text
    assert "\nreal\n" in text
    plain = json.loads(printed(capsys, logdir, "--json"))
    assert [run["run"]["virtual_gpu"] for run in plain["runs"]] == [
        "virtual H100 80GB",
        "",
    ]
    assert [run["run"]["simulated"] for run in plain["runs"]] == [False, False]
    markdown = printed(capsys, logdir, "--run", "predicted", "--md")
    assert "virtual H100 80GB: memory is what torch's allocator did;" in markdown
    assert "virtual" not in printed(capsys, logdir, "--run", "real", "--md")
