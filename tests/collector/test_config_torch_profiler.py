"""Settings of torch's profiler that cannot be are refused at record, with the remedy."""

from __future__ import annotations

import pytest

from collector.config import load
from collector.errors import ConfigError

FULL = {"record_shapes": True, "profile_memory": True, "with_stack": True}


def refused(**settings):
    with pytest.raises(ConfigError) as caught:
        load({"torch_profiler": {"enabled": True, **settings}})
    return str(caught.value)


def test_the_short_form_switches_it_on():
    assert load(torch_profiler=True).torch_profiler.enabled
    assert not load().torch_profiler.enabled


@pytest.mark.parametrize("missing", sorted(FULL))
def test_a_memory_file_names_what_it_needs(missing):
    settings = {**FULL, missing: False, "memory_filename": "m.csv"}
    text = refused(**settings)
    assert f"needs torch_profiler.{missing}, which is off" in text
    assert "in the given mapping" in text
    load({"torch_profiler": {"enabled": True, **FULL, "memory_filename": "m.csv"}})


def test_several_missing_options_are_named_at_once():
    text = refused(memory_filename="m.csv", profile_memory=False)
    for name in FULL:
        assert f"torch_profiler.{name}" in text
    assert "which are off" in text


def test_stacks_need_stacks():
    assert "needs torch_profiler.with_stack" in refused(stacks_filename="s")


def test_what_is_off_may_be_half_configured():
    half = load({"torch_profiler": {"enabled": False, "memory_filename": "m.csv"}})
    assert not half.torch_profiler.enabled
    assert half.torch_profiler.memory_filename == "m.csv"


def test_a_template_holds_known_variables_only():
    text = refused(filename="a{bach}")
    assert "'{bach}': did you mean 'batch'?" in text


def test_traces_stay_below_the_ranks_folder():
    assert "leaves the folder" in refused(filename="../{rank}")
    assert "names no file" in refused(filename="a/")


def test_words_are_checked():
    assert "must be a list of cpu, cuda" in refused(activities=["gpu"])
