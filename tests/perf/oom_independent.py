"""Verdicts against cases of an independent generator: `tests/oom_cases`.

Each snapshot is given to the command line, and its report is judged from the outside::

    python -m tests.perf.oom_independent --seeds 0-3 --kinds pending,giant
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import tempfile
from collections import Counter
from pathlib import Path

from tb_plugin.cli import main as main_of_memboard
from tests.oom_cases import dump
from tests.oom_cases.cases import KINDS, make
from tests.oom_cases.truth import Judgement, judge


def main() -> None:
    """Print the matrix, then what is wrong with each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0-3", help="such as 0-3")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--keep", type=Path, help="a folder for the snapshots")
    parser.add_argument("--quiet", action="store_true", help="the matrix alone")
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    with tempfile.TemporaryDirectory() as made:
        folder = given.keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
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
    capacity = case.truth.capacity if knows_capacity() else None
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


def knows_capacity(known: list[bool] = []) -> bool:  # noqa: B006
    """Whether this release's report can be told the device's size."""
    if not known:
        known.append("--capacity" in memboard("report", "--help"))
    return known[0]


def print_kinds(judged: list[Judgement]) -> None:
    """One row for each kind: how many are right, and what was said instead."""
    print(f"{'kind':22}{'n':>3}{'right':>7}{'cause':>7}  said instead")
    for kind in dict.fromkeys(one.kind for one in judged):
        own = [one for one in judged if one.kind == kind]
        said = Counter(one.said for one in own if not one.cause_right)
        instead = ", ".join(f"{cause} {n}" for cause, n in said.most_common())
        right, causes = (
            sum(map(bool, x))
            for x in zip(*((o.right, o.cause_right) for o in own), strict=True)
        )
        print(f"{kind:22}{len(own):>3}{right:>7}{causes:>7}  {instead}")
    print(
        f"{'all':22}{len(judged):>3}{sum(o.right for o in judged):>7}"
        f"{sum(o.cause_right for o in judged):>7}\n"
    )


def print_causes(judged: list[Judgement]) -> None:
    """Precision and recall of each cause, words and figures left aside.

    Of the verdicts that said it, the share for which it is accepted; of the cases whose
    truest cause it is, the share of which an accepted one was said.
    """
    print(f"{'cause':14}{'true':>5}{'said':>5}{'precision':>11}{'recall':>8}")
    for cause in sorted({one.cause for one in judged} | {one.said for one in judged}):
        true = [one.cause_right for one in judged if one.cause == cause]
        said = [one.cause_right for one in judged if one.said == cause]
        precision, recall = (
            f"{sum(own) / len(own):.2f}" if own else "-" for own in (said, true)
        )
        print(f"{cause:14}{len(true):>5}{len(said):>5}{precision:>11}{recall:>8}")
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
