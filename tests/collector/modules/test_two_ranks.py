"""A real group of two processes: the same bytes as on a fake group, and as torch's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.collector.modules import oracle, reduction, two_ranks

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:FSDP2-wrapped module")
@pytest.mark.usefixtures("fake_world")
def test_two_ranks_of_gloo_hold_what_a_fake_group_says(tmp_path):
    oracle.require()
    ranks = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.collector.modules.two_ranks"),
                *(str(rank), str(tmp_path / "store")),
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    found = []
    for rank in ranks:
        output, errors = rank.communicate(timeout=300)
        assert rank.returncode == 0, errors[-2000:]
        found.append(json.loads(output.splitlines()[-1]))
    fake = json.loads(json.dumps(two_ranks.findings()))
    found.append(json.loads(json.dumps(fake)))
    names = reduction.FSDP_CATEGORIES
    for steps in found:
        first, second, theirs = steps
        assert first["peak"] == second["peak"] == fake[0]["peak"]
        held = {names[name]: size for name, size in first["peak"]["cpu"].items()}
        assert held == theirs["peak"]["cpu"]
        assert sum(held.values()) == 13_759_100
        assert [step["rows"] for step in (first, second)] == [fake[0]["rows"]] * 2
