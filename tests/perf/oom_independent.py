"""Verdicts against cases of an independent generator: `tests/oom_cases`.

Each snapshot is given to the command line, and its report is judged from the outside:

    python -m tests.perf.oom_independent --seeds 0-3 --kinds pending,giant
"""

from __future__ import annotations

import contextlib
import io
import json
from collections import Counter
from pathlib import Path

from memboard.tb_plugin.cli import main as main_of_memboard
from tests.oom_cases import dump
from tests.oom_cases.cases import KINDS, make
from tests.oom_cases.truth import Judgement, judge
from tests.perf import bench


def main() -> None:
    """Print the matrix, then what is wrong with each case."""
    given = bench.options(
        __doc__, seeds="0-3", kinds=",".join(KINDS), keep=Path, quiet=False
    )
    first, _, last = given.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    with bench.folder(given.keep) as folder:
        judged = [
            judged_case(kind, seed, folder)
            for kind in given.kinds.split(",")
            for seed in seeds
        ]
    print_kinds(judged)
    print_causes(judged)
    if not given.quiet:
        print_wrong(judged)


def judged_case(kind: str, seed: int, folder: Path) -> Judgement:
    """Make, report and judge one case."""
    case = make(kind, seed)
    path = folder / f"{case.name}.pickle"
    dump.write(case.snapshot, path)
    capacity = case.truth.capacity
    return judge(case, *reported(path, capacity), told=capacity is not None)


def reported(path: Path, capacity: int | None = None) -> tuple[dict | None, str]:
    """Return the command's JSON, and its Markdown where it names no error."""
    more = [] if capacity is None else ["--capacity", f"{capacity / (1 << 30):.2f}GiB"]
    written = memboard("report", str(path), "--json", *more)
    try:
        report = json.loads(written)
    except ValueError:
        return None, written
    named = any(run["findings"]["num_errors"] for run in report["runs"])
    return report, "" if named else memboard("report", str(path), "--md", *more)


def memboard(*arguments: str) -> str:
    """Run the command as a user does, but in this process: it starts in no time."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        contextlib.suppress(SystemExit),  # --help, and errors
    ):
        main_of_memboard(list(arguments))
    return out.getvalue() or err.getvalue()


def print_kinds(judged: list[Judgement]) -> None:
    """One row for each kind: how many are right, and what was said instead."""
    row = bench.table("kind", "cases", "right", "cause right", "said instead")

    def counted(kind: str, own: list[Judgement]) -> None:
        said = Counter(one.said for one in own if not one.cause_right)
        instead = ", ".join(f"{cause} {n}" for cause, n in said.most_common())
        causes = sum(bool(one.cause_right) for one in own)
        row(kind, len(own), sum(bool(one.right) for one in own), causes, instead)

    for kind in dict.fromkeys(one.kind for one in judged):
        counted(kind, [one for one in judged if one.kind == kind])
    counted("all", judged)
    print()


def print_causes(judged: list[Judgement]) -> None:
    """Precision and recall of each cause, words and figures left aside.

    Of the verdicts that said it, the share for which it is accepted; of the cases whose
    truest cause it is, the share of which an accepted one was said.
    """
    row = bench.table("cause", "true", "said", "precision", "recall")
    for cause in sorted({one.cause for one in judged} | {one.said for one in judged}):
        true = [one.cause_right for one in judged if one.cause == cause]
        said = [one.cause_right for one in judged if one.said == cause]
        shares = (sum(own) / len(own) if own else None for own in (said, true))
        row(cause, len(true), len(said), *shares)
    print()


def print_wrong(judged: list[Judgement]) -> None:
    """Say of each wrong case what is missing, forbidden or a wrong figure."""
    for one in judged:
        if one.right:
            continue
        print(
            f"{one.case}: said {one.said}, true {one.cause}\n    {one.sentence[:300]}"
        )
        for label in ("missing", "forbidden", "wrong_facts"):
            for words in getattr(one, label):
                print(f"    {label}: {words}")


if __name__ == "__main__":
    main()
