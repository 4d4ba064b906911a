"""The allocator model does what torch's own allocator does, operation by operation.

`python -m tests.virtual.allocator_runs` does the same a thousand times for each setting.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

import pytest

from collector.virtual.present import virtual_device
from tests.virtual.random_sequences import SETTINGS

PYTHON = os.environ.get("MEMBOARD_VIRTUAL_PYTHON")
SEQUENCES = 24
ORDER_OF_STREAMS = "inactive_split_bytes"
"""torch frees what several streams have finished in the order of a hash table: what was
free at once meanwhile is another sum."""


def python() -> str:
    """The Python with a CUDA build of torch; skips where none is named."""
    if PYTHON:
        return PYTHON
    if virtual_device() is None or find_spec("torch") is None:
        pytest.skip("MEMBOARD_VIRTUAL_PYTHON names no Python with torch's CUDA build")
    return sys.executable


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_model_has_torchs_segments_blocks_events_and_statistics(setting):
    from tests.virtual.allocator_runs import both

    results = both(setting, SEQUENCES, python())
    assert len(results) == SEQUENCES
    for done, found in results:
        seen = (done.torch, done.text, done.operations)
        assert not found.blocks, seen
        if SETTINGS[setting].streams == 1:  # what merges last leaves its request behind
            assert not found.requested, seen
        assert not found.events, seen
        others = [words for words in found.stats if not words.startswith(ORDER_OF_STREAMS)]  # fmt: skip
        assert not others, seen
    assert sum(found.num_blocks for _, found in results) > 10 * SEQUENCES
    if setting.startswith(("pressure", "all")):
        assert sum(done.stats["num_ooms"] for done, _ in results) > SEQUENCES / 4
