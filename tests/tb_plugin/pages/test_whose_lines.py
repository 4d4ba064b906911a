"""A finding about one rank names no line, stack, module or message of another rank."""

from __future__ import annotations

import json
import pickle
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from memboard.collector.format import oom
from memboard.collector.format.memory import CATEGORIES
from memboard.collector.format.snapshots import tables_of
from memboard.tb_plugin.analysis.findings.stragglers import straggling
from memboard.tb_plugin.analysis.findings.text import PART_TEXT
from memboard.tb_plugin.analysis.ranks.stragglers import Straggler
from tests.builders import RankBuilder, RunBuilder
from tests.oom_reports import add_report
from tests.tb_plugin.analysis.made_programs import GIB, MIB, Program, at
from tests.tb_plugin.client import Page, answered

if TYPE_CHECKING:
    from pathlib import Path

RANKS = (0, 1, 2)


def file_of(rank: int) -> str:
    return f"/home/me/only{rank}.py"


def program(rank: int, rounds: int) -> Program:
    """Each round keeps a block, in a file that no other rank has; the larger the rank's number
    the larger."""
    made = Program()
    own = file_of(rank)
    made.alloc(8 * GIB, [at(f"build{rank}", 10 + rank, own), at("<module>", 200, own)])
    for _ in range(rounds):
        batch = made.alloc(64 * MIB, [at(f"load{rank}", 20 + rank, own)])
        made.alloc((1 + rank) * 512 * MIB, [at(f"keep{rank}", 30 + rank, own)])
        made.free(batch)
    return made


def report(rank: RankBuilder, number: int, **more: Any) -> None:
    own = file_of(number)
    asked = (f"forward{number}", own, 40 + number)
    held = [
        (
            40 * GIB,
            30,
            ((f"hold{number}", own, 50 + number),),
            CATEGORIES.index("activation"),
        ),
        (
            30 * GIB,
            9,
            ((f"state{number}", own, 60 + number),),
            CATEGORIES.index("optimizer"),
        ),
    ]
    add_report(
        rank,
        tables={"stack": oom.stack_table([(asked,)]), **oom.holder_tables(held)},
        spans=[f"span{number}"],
        functions=[f"function{number}"],
        exception={"type": f"Error{number}", "message": f"message{number}"},
        **more,
    )


def ran_out(folder: Path, *, with_history: bool) -> None:
    run = RunBuilder(folder / "job")
    for number in RANKS:
        rank = run.rank(number, world_size=len(RANKS))
        report(rank, number, step=40 + number)
        if with_history:
            made = program(number, 20)
            made.oom(
                2 * GIB, [at(f"forward{number}", 40, file_of(number))], device_free=GIB
            )
            rank.capture(
                "history",
                "",
                iteration=0,
                label="oom",
                context="oom",
                step=40 + number,
                meta={"report": 1},
                tables=tables_of(made.snapshot()),
            )
        rank.close("exception", f"message{number}", step=40, phase=f"phase{number}")


def grew(folder: Path) -> None:
    run, steps = RunBuilder(folder / "job"), np.arange(200)
    for number in RANKS:
        rank = run.rank(number, world_size=len(RANKS))
        held = 20 * GIB + steps * (1 + number) * 20 * MIB
        rank.steps(
            steps,
            allocated_bytes=held,
            allocated_peak_bytes=held + GIB,
            rss_bytes=GIB + steps * (3 - number) * 20 * MIB,
        )
        for label, rounds in (("a", 10), ("b", 20)):
            rank.capture(
                "history",
                "",
                iteration=0,
                label=label,
                context="",
                step=rounds,
                meta={},
                tables=tables_of(program(number, rounds).snapshot()),
            )
        rank.close()


def ended(folder: Path, how: str) -> None:
    run = RunBuilder(folder / "job")
    for number in RANKS:
        rank = run.rank(number, memory_limit_bytes=(2 + number) * GIB)
        rank.steps(range(5 + number), rss_bytes=[300 * MIB] * (5 + number))
        report(rank, number, origin="exception", is_out_of_memory=False)
        if how != "lost":
            rank.close(how, f"message{number}", step=5, phase=f"phase{number}")


def pickles(folder: Path) -> None:
    (folder / "job").mkdir(parents=True)
    for number in RANKS:
        made = program(number, 20)
        made.oom(
            2 * GIB, [at(f"forward{number}", 40, file_of(number))], device_free=GIB
        )
        path = folder / "job" / f"rank{number}_snapshot.pickle"
        path.write_bytes(pickle.dumps(made.snapshot(), protocol=4))


RUNS = {
    "errors": lambda folder: ran_out(folder, with_history=False),
    "errors with histories": lambda folder: ran_out(folder, with_history=True),
    "growth": grew,
    "exceptions": lambda folder: ended(folder, "exception"),
    "signals": lambda folder: ended(folder, "signal"),
    "lost": lambda folder: ended(folder, "lost"),
    "pickles": pickles,
}

_OWN = re.compile(
    r"(?:only|build|load|keep|forward|hold|state|span|function|Error|message|phase)(\d)\b"
)


def whose(told: Any) -> set[int]:
    """Ranks whose own names occur."""
    return {int(rank) for rank in _OWN.findall(json.dumps(told))}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("rank", [None, 1])
def test_findings_name_what_their_own_rank_recorded(tmp_path, name, rank):
    RUNS[name](tmp_path)
    page = Page(tmp_path)
    more = {} if rank is None else {"rank": rank}
    found = answered(
        lambda: page.of_run("/findings", "job", **more),
        lambda answer: not answer["still_reading"],
    )["findings"]
    named = [one for one in found if whose(one)]
    assert named
    for one in named:
        whole = ("others", "markdown")  # the Markdown has the others' sentences too
        own = {key: value for key, value in one.items() if key not in whole}
        assert whose(own) <= {one["rank"]}, own
        for sentence in one["others"]:
            (other,) = re.findall(r"^Rank (\d)", sentence)
            assert whose(sentence) <= {int(other)}


@pytest.mark.parametrize("parts", [("forward", "dataloader"), ("forward", "forward")])
def test_the_part_of_one_straggler_is_not_said_of_another(parts):
    late = [
        Straggler(rank, 0.9, 0.4 - rank / 10, part, 0.4, stands_out=True, by_part=False)
        for rank, part in enumerate(parts)
    ]
    one = straggling(late, {}, 1.0, 16)
    assert one is not None
    shared = len(set(parts)) == 1
    assert one.sentence.endswith(
        f"the median rank, {'' if shared else 'rank 0 '}in {PART_TEXT['forward']}."
    )
    assert one.advice[0].text.startswith("On rank 0: ") != shared
