"""The allocator model does what torch's own allocator does, operation by operation.

`python -m tests.virtual.allocator_runs` does the same a thousand times for each setting.
"""

from __future__ import annotations

import pytest

from tests.virtual.random_sequences import SETTINGS
from tests.virtual.running import python

SEQUENCES = 24


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_model_has_torchs_segments_blocks_events_and_statistics(setting):
    from tests.virtual.allocator_runs import both

    results = both(setting, SEQUENCES, python())
    assert len(results) == SEQUENCES
    for done, found in results:
        seen = (done.torch, done.text, done.operations)
        assert found.same, (found, *seen)
    assert sum(found.num_blocks for _, found in results) > 10 * SEQUENCES
    if setting.startswith(("pressure", "all")):
        assert sum(done.stats["num_ooms"] for done, _ in results) > SEQUENCES / 4
