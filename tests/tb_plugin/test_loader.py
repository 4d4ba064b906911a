"""The entry point: light, harmless, and off where the user says so."""

from __future__ import annotations

import argparse
import builtins
import resource
import subprocess
import sys
from types import SimpleNamespace

import pytest

from memboard.tb_plugin import loader
from memboard.tb_plugin.loader import Loader


def flags_of(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    Loader().define_flags(parser)
    flags = parser.parse_args(arguments)
    flags.samples_per_plugin = {}
    return flags


@pytest.fixture
def limits(monkeypatch):
    """Limits on open files that a test may set; records what was asked for."""
    state = SimpleNamespace(now=(256, 4096), asked=[])

    def setrlimit(_, wanted):
        state.asked.append(wanted)
        state.now = wanted

    monkeypatch.setattr(resource, "getrlimit", lambda _: state.now)
    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    return state


def test_all_samples_are_kept_unless_the_user_says_otherwise(limits):
    flags = flags_of()
    Loader().fix_flags(flags)
    assert flags.samples_per_plugin == {"memboard": 0}
    flags.samples_per_plugin = {"memboard": 7, "scalars": 1}
    Loader().fix_flags(flags)
    assert flags.samples_per_plugin == {"memboard": 7, "scalars": 1}
    off = flags_of("--memboard_keep_all_samples", "false")
    Loader().fix_flags(off)
    assert off.samples_per_plugin == {}


def test_the_limit_on_open_files_is_raised_to_the_hard_one(limits):
    Loader().fix_flags(flags_of())
    assert limits.asked == [(4096, 4096)]
    Loader().fix_flags(flags_of())
    assert limits.asked == [(4096, 4096)]


def test_the_limit_stays_where_the_user_says_so(limits):
    Loader().fix_flags(flags_of("--memboard_raise_file_limit", "false"))
    assert limits.asked == []


@pytest.mark.parametrize(("platform", "most"), [("linux", 1 << 16), ("darwin", 10_240)])
def test_where_there_is_no_hard_limit_a_safe_number_is_asked_for(
    limits, monkeypatch, platform, most
):
    limits.now = (256, resource.RLIM_INFINITY)
    monkeypatch.setattr(loader.sys, "platform", platform)
    Loader().fix_flags(flags_of())
    assert limits.asked == [(most, resource.RLIM_INFINITY)]


def test_a_refused_limit_is_no_error(limits, monkeypatch):
    refused = []

    def refuse(*asked):
        refused.append(asked)
        raise ValueError("not allowed")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    flags = flags_of()
    Loader().fix_flags(flags)
    assert len(refused) == 1
    assert flags.samples_per_plugin["memboard"] == 0


def test_nothing_raises_whatever_tensorboard_passes(caplog):
    loaded = Loader()
    loaded.define_flags(None)  # type: ignore[arg-type]
    loaded.fix_flags(None)  # type: ignore[arg-type]
    assert loaded.load(SimpleNamespace(logdir=object())) is None
    assert "could not be loaded" in caplog.text


def test_a_broken_installation_costs_only_the_tab(monkeypatch, caplog):
    real = builtins.__import__

    def broken(name, *rest):
        if name == "memboard.tb_plugin.plugin":
            raise ImportError("No module named 'msgspec'")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", broken)
    assert Loader().load(None) is None
    assert "msgspec" in caplog.text


def test_importing_the_entry_point_loads_nothing_of_ours_but_itself():
    code = (
        "import sys, memboard.tb_plugin.loader\n"
        "print(*sorted(m for m in sys.modules if m.startswith('memboard')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [
        "memboard",
        "memboard.collector",
        "memboard.tb_plugin",
        "memboard.tb_plugin.loader",
    ]
