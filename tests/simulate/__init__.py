"""A model of torch's caching allocator, trainings on it, and snapshots of them.

- `allocator`: the model, which tests/virtual compares with torch's own;
- `history`: what an allocator did, when and from which line;
- `snapshots`: that history in torch's own structure, a transformer training with realistic
  stacks, and out-of-memory errors of seven known causes.

Everything is seeded. Nothing here is shared with the plugin's analysis, so it can judge
that analysis.
"""

from __future__ import annotations

from tests.simulate.snapshots.form import Form
from tests.simulate.snapshots.label import OOM_CAUSES, OomCause, OomLabel
from tests.simulate.snapshots.oom import OomCase, oom_case, second_causes
from tests.simulate.snapshots.rank import SimulatedRank, trained_rank

__all__ = [
    "OOM_CAUSES",
    "Form",
    "OomCase",
    "OomCause",
    "OomLabel",
    "SimulatedRank",
    "oom_case",
    "second_causes",
    "trained_rank",
]
