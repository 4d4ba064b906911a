"""Help of the command line: its length, and what it names."""

from __future__ import annotations

import pytest

from memboard.tb_plugin.cli import VERBS, main

MOST_LINES = 30
"""What a small terminal shows at once."""


def helped(capsys, monkeypatch, *words):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("words", [[], *([verb] for verb in VERBS)])
def test_help_fits_a_screen(words, capsys, monkeypatch):
    assert len(helped(capsys, monkeypatch, *words)) <= MOST_LINES


def test_the_virtual_gpus_options_are_listed_behind_it(capsys, monkeypatch):
    alone = "\n".join(helped(capsys, monkeypatch, "run"))
    assert "--on GPU --help lists its options" in alone
    assert "--sweep" not in alone
    assert "--sweep" in "\n".join(helped(capsys, monkeypatch, "run", "--on", "h100"))


def test_the_version_is_that_of_the_package(capsys):
    from importlib.metadata import version

    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"memboard {version('memboard')}\n"
