"""What is live is one number in an answer: in its sentences, its evidence and its tables."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from memboard.collector.format import oom
from memboard.collector.format.memory import CATEGORIES
from memboard.tb_plugin.analysis.findings.text import size_text
from memboard.tb_plugin.cli import main
from tests.builders import RunBuilder
from tests.oom_cases import dump
from tests.oom_cases.cases import make
from tests.oom_reports import LIBRARY, OPTIMIZER, add_report, report_tables
from tests.tb_plugin.analysis.made_programs import GIB
from tests.tb_plugin.pages.test_verdict_of_programs import verdicts

if TYPE_CHECKING:
    from pathlib import Path

# Blocks of these are larger than what was asked for, by 10 to 130 MiB in all.
ROUNDED = (
    ("checkpoint_load", 1),
    ("process_limit", 3),
    ("user_pool_cached", 1),
    ("unknown_capacity", 0),
    ("accumulate_unsharded", 0),
    ("one_of_several", 1),
)


def said(one: dict[str, Any]) -> str:
    state = one["state"] or {}
    return " ".join(
        [
            one["sentence"],
            state.get("held_sentence", ""),
            *(told["text"] for told in one["advice"]),
        ]
    )


@pytest.mark.parametrize(("kind", "seed"), ROUNDED)
def test_sentences_evidence_and_tables_count_the_same(tmp_path, capsys, kind, seed):
    path = tmp_path / "snapshot.pickle"
    dump.write(make(kind, seed).snapshot, path)
    main(["report", str(path), "--json"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    errors = [one for one in run["findings"]["findings"] if one["state"]]
    assert errors
    for one in errors:
        evidence = {number["key"]: number["value"] for number in one["evidence"]}
        live = set(re.findall(r"([\d.]+ [KMG]iB)(?: that)? was live", said(one)))
        assert live <= {size_text(evidence["held"])}
        for held in one["state"]["held_by"]:
            of = held["bytes"] / held["share"]
            assert size_text(of) == size_text(evidence["held"])
    rounded = 0
    for device in run["snapshots"][0]["devices"]:
        peak = device["peak_active_bytes"]
        categories = sum(device["categories_bytes"].values())
        assert categories + device["rounding_bytes"] == peak
        rounded += device["rounding_bytes"]
        for site in device["holders"]:
            assert size_text(site["bytes"] / site["share"]) == size_text(peak)
    assert rounded > 0


def reported(tmp_path: Path, *, allocated: int, active: int) -> dict[str, Any]:
    """An error of which a report tells alone, whose lines count all that is active."""
    rank = RunBuilder(tmp_path / "job").rank(0)
    memory = {"allocated_bytes": allocated, "active_bytes": active}
    memory |= {"reserved_bytes": 78 * GIB, "reserved_peak_bytes": 78 * GIB}
    add_report(
        rank,
        memory=memory,
        holders={"live_bytes": active, "num_blocks": 40, "source": "segments"},
    )
    rank.close(how="exception")
    (one,) = verdicts(tmp_path)
    return one


def test_lines_that_count_pending_blocks_are_no_shares_of_what_is_live(tmp_path):
    one = reported(tmp_path, allocated=70 * GIB, active=77 * GIB)
    (held,) = [number for number in one["evidence"] if number["key"] == "held"]
    assert (held["label"], held["value"]) == ("live (allocated)", 70 * GIB)
    assert "of the 77.0 GiB that was live or waiting for another stream" in said(one)
    assert "77.0 GiB that was live came" not in said(one)
    assert one["held_by"][0]["share"] == pytest.approx(43 / 77)


def test_a_reported_line_is_of_the_category_that_most_of_its_bytes_are_of(tmp_path):
    """As a replayed one, however many stacks it has."""
    rank = RunBuilder(tmp_path / "job").rank(0)
    held = [
        (12 * GIB, 3, (OPTIMIZER,), CATEGORIES.index("grad")),
        (10 * GIB, 2, (LIBRARY, OPTIMIZER), CATEGORIES.index("optimizer")),
        (9 * GIB, 2, (LIBRARY, LIBRARY, OPTIMIZER), CATEGORIES.index("optimizer")),
    ]
    add_report(rank, tables={**report_tables(), **oom.holder_tables(held)})
    rank.close(how="exception")
    (one,) = verdicts(tmp_path)
    (line,) = one["held_by"]
    assert (line["category"], line["bytes"]) == ("optimizer", 31 * GIB)


def test_without_pending_blocks_they_are(tmp_path):
    one = reported(tmp_path, allocated=77 * GIB, active=77 * GIB)
    (held,) = [number for number in one["evidence"] if number["key"] == "held"]
    assert (held["label"], held["value"]) == ("live (active)", 77 * GIB)
    assert "of the 77.0 GiB that was live came" in said(one)
