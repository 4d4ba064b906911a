"""Shells complete what `memboard completion` tells them; each is asked itself."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from memboard.tb_plugin.cli import VERBS, main


@pytest.fixture
def script(capsys, tmp_path):
    def write(shell):
        assert main(["completion", shell]) == 0
        path = tmp_path / "memboard.completion"
        path.write_text(capsys.readouterr().out)
        return path

    return write


def bash(script, line):
    words = line.split(" ")
    ask = (
        f"source {script}; COMP_WORDS=({' '.join(words[:-1])} '{words[-1]}')"
        f" COMP_CWORD={len(words) - 1}; _memboard; echo ${{COMPREPLY[*]}}"
    )
    return run("bash", "--norc", "-c", ask)


def fish(script, line):
    found = run("fish", "--no-config", "-c", f"source {script}; complete -C '{line}'")
    return [word for word in found if not word.startswith("/")]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.strip().splitlines()
    return [line.split("\t")[0] for line in lines] if len(lines) > 1 else lines


SHELLS = [
    pytest.param(
        *pair,
        marks=pytest.mark.skipif(not shutil.which(pair[0]), reason="no such shell"),
    )
    for pair in (("bash", bash), ("fish", fish))
]


@pytest.mark.parametrize(("shell", "ask"), SHELLS)
def test_verbs_options_and_choices_are_completed(script, shell, ask):
    written = script(shell)

    def words(line):
        return " ".join(ask(written, line)).replace("\t", " ").split()

    assert set(VERBS) <= set(words("memboard "))
    assert words("memboard rep")[0] == "report"
    assert "--no-browser" in words("memboard open --no")
    assert {"all", "8"} <= set(words("memboard demo --metrics "))
    assert {"bash", "zsh", "fish"} <= set(words("memboard completion "))
    assert "--help" not in words("memboard open ")  # files come there


@pytest.mark.skipif(not shutil.which("zsh"), reason="no such shell")
def test_zsh_takes_the_script(script):
    ask = f"source {script('zsh')}; print $_comps[memboard]"
    assert "_memboard" in run("zsh", "-f", "-c", ask)[0]
