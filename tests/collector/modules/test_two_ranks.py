"""A real group of two processes: the same bytes as on a fake group, and as torch's."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests import programs
from tests.collector.modules import oracle, reduction, two_ranks

RANK = "from tests.collector.modules import two_ranks\ntwo_ranks.main()"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:FSDP2-wrapped module")
@pytest.mark.usefixtures("fake_world")
def test_two_ranks_of_gloo_hold_what_a_fake_group_says(tmp_path):
    oracle.require()
    store = tmp_path / "store"
    ranks = [programs.Program(RANK, rank, store) for rank in (0, 1)]
    found = []
    for rank in ranks:
        output, errors = rank.communicate()
        assert rank.returncode == 0, errors[-2000:]
        found.append(json.loads(output.splitlines()[-1]))
    fake = json.loads(json.dumps(two_ranks.findings()))
    found.append(json.loads(json.dumps(fake)))
    names = reduction.FSDP_CATEGORIES
    for steps in found:
        first, second, theirs = steps
        assert first["peak"] == second["peak"] == fake[0]["peak"]
        held = Counter()
        for name, size in first["peak"]["cpu"].items():
            held[names[name]] += size
        assert held == theirs["peak"]["cpu"]
        assert sum(held.values()) == 13_759_100
        assert [step["rows"] for step in (first, second)] == [fake[0]["rows"]] * 2
