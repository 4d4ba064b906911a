"""Tags: what an event's user_metadata says of its call."""

from __future__ import annotations

import pytest

from memboard.collector.format.snapshots.tags import is_tag, tag_data, tag_text


def test_a_tag_says_step_phase_and_function():
    tag = tag_text(step=12, phase="val 2", function='odd "name"')
    assert tag_data(tag) == {"step": 12, "phase": "val 2", "function": 'odd "name"'}
    assert is_tag(tag)


@pytest.mark.parametrize(
    "metadata",
    [
        "",
        None,
        7,
        {},
        "step=1",
        "memboard",
        "memboard {",
        "memboard 5",
        "memboard []",
        'memboard {"step":"x"}',
        "memboard " + "[" * 100_000,
    ],
)
def test_anything_else_is_the_programs_own_or_no_tag(metadata):
    assert tag_data(metadata) is None
