"""The allocator model does what torch's own allocator does, operation by operation.

`python -m tests.virtual.allocator_runs` does the same a thousand times for each setting.
"""

from __future__ import annotations

import pytest

from tests.virtual.random_sequences import SETTINGS
from tests.virtual.running import python

SEQUENCES = 8
OUT_OF_MEMORY = 24
"""Where some sequences, not each of them, run out of memory."""


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_model_has_torchs_segments_blocks_events_and_statistics(setting):
    from tests.virtual.allocator_runs import both

    runs_out = setting.startswith(("pressure", "all"))
    number = OUT_OF_MEMORY if runs_out else SEQUENCES
    results = both(setting, number, python())
    assert len(results) == number
    for done, found in results:
        seen = (done.torch, done.text, done.operations)
        assert found.same, (found, *seen)
    assert sum(found.num_blocks for _, found in results) > 10 * number
    if runs_out:
        assert sum(done.stats["num_ooms"] for done, _ in results) > number / 4
