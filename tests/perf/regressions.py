"""Figures of the benchmarks here and at an earlier commit, and which of them got worse.

    python -m tests.perf.regressions [--only BENCHMARK ...] [--base COMMIT] [--rounds 3]
        [--tolerance 0.1] [--list]

Without `--only` all benchmarks of `BENCHMARKS` run, about half an hour in all. The base is the
newest tag, or without one the commit that last changed `tb_plugin/docs/measured.md`: the one
whose figures stand there. It is checked out beside this tree, uses this interpreter's
packages, and runs its own scripts on inputs of its own.

Both sides take turns, `--rounds` times each. A figure is worse where its median rose by more
than the tolerance and its lowest value lies above the base's highest, so that noise of the
machine is no news. Figures of a peer or a floor tell how the machine itself changed: they are
shown, and never worse. The exit status is 1 where anything got worse, or could not be
compared because a script failed, at either commit.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.perf import bench

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENT = "tb_plugin/docs/measured.md"


class Benchmark(NamedTuple):
    """A script, and what of its tables is compared."""

    module: str
    arguments: tuple[str, ...] = ()
    not_costs: str = r"$^"
    """Rows and columns that are inputs, peers' figures or ratios to them."""


BENCHMARKS = {
    "step": Benchmark("step_cost", ("step",)),
    "overhead": Benchmark("step_cost", ("overhead",), r", off|quartiles|wall"),
    "profiling": Benchmark(
        "step_cost",
        ("profiling",),
        r"the step itself|modules, saved|hooks that do nothing",
    ),
    "inside": Benchmark("inside_step", (), r"hooks that do nothing"),
    "values": Benchmark("step_cost", ("values",), r"add_scalar|SummaryWriter|ratio"),
    "spans": Benchmark("span_cost"),
    "start": Benchmark("startup", ("--rounds", "7"), r"torch|without"),
    "captures": Benchmark("captures_cost"),
    "history": Benchmark("history_cost", ("--events", "100000"), r"pickle|ratio"),
    "report": Benchmark("capture_cost"),
    "tracker": Benchmark(
        "tracker_cost", ("--no-torch", "--layers", "2", "32"), r"bare|empty"
    ),
    "ranks": Benchmark("plugin_scale", ("--sizes", "64x1000", "1000x1000"), r"dropped"),
    "snapshots": Benchmark(
        "snapshot_reader",
        ("--events", "1000000", "--bytes"),
        r"pickle|gc off|^time$|^peak$|^s$",
    ),
    "replay": Benchmark("replay", ("--events", "1000000"), r"of the first"),
    "files": Benchmark("snapshot_files", ("--files", "1000", "10000")),
    "merge": Benchmark("merge", ("--rounds", "1"), r"Composer|x$"),
}

Figures = dict[tuple[str, str], float]
"""By table's row and column."""

_NUMBER = re.compile(r"[-+]?[\d,]+\.?\d*(?:e[-+]?\d+)?")


def figures_of(printed: str) -> Figures:
    """Numbers of all Markdown tables in a benchmark's output.

    A row's name are its first cell and all others without a number at the front. Of a
    cell that says more than one number the first counts. Rows of one name are numbered.
    """
    figures: Figures = {}
    heads: list[str] = []
    lines = printed.splitlines()
    for index, line in enumerate(lines):
        if not line.startswith("|") or set(line) <= set("|- "):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        is_head = lines[index + 1 : index + 2] and set(lines[index + 1]) <= set("|- ")
        if is_head:
            heads = cells
            continue
        numbers, texts = {}, [cells[0]]
        for head, cell in zip(heads[1:], cells[1:], strict=False):
            number = _NUMBER.match(cell)
            if number:
                numbers[head or heads[0]] = float(number[0].replace(",", ""))
            elif cell:
                texts.append(cell)
        name = " | ".join(texts)
        if any((name, head) in figures for head in numbers):
            name += f" ({index})"
        figures.update({(name, head): number for head, number in numbers.items()})
    return figures


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A commit's tree in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "base"
        git("worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree))


def git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=bench.ROOT, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def base_commit() -> str:
    """The newest tag, else the commit whose figures the document has."""
    tag = git("tag", "--sort=-creatordate").partition("\n")[0]
    return tag or git("log", "-1", "--format=%h", "--", DOCUMENT)


def run(tree: Path, benchmark: Benchmark) -> Figures:
    """The figures that a tree's own script prints.

    Raises:
        RuntimeError: the script failed.
    """
    paths = [str(tree), str(tree / ".package")]
    paths += filter(None, [os.environ.get("PYTHONPATH")])
    done = subprocess.run(
        [sys.executable, "-m", f"tests.perf.{benchmark.module}", *benchmark.arguments],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it printed nothing"]
        raise RuntimeError(lines[-1])
    return figures_of(done.stdout)


def is_worse(before: list[float], after: list[float], tolerance: float) -> bool:
    """Whether a cost rose by more than the tolerance, and out of the base's range."""
    rise = statistics.median(after) - statistics.median(before)
    return rise > tolerance * abs(statistics.median(before)) and min(after) > max(
        before
    )


def spread(values: list[float]) -> str:
    low, high = bench.shown(min(values)), bench.shown(max(values))
    return low if low == high else f"{low} .. {high}"


def measure(
    trees: dict[str, Path], benchmark: Benchmark, rounds: int
) -> dict[str, dict[tuple[str, str], list[float]]]:
    """Every figure of every side, of all rounds; sides take turns.

    Raises:
        RuntimeError: a script failed.
    """
    sides: dict[str, dict[tuple[str, str], list[float]]]
    sides = {side: defaultdict(list) for side in trees}
    for _ in range(rounds):
        for side, tree in trees.items():
            for key, value in run(tree, benchmark).items():
                sides[side][key].append(value)
    return sides


def main() -> None:
    given = bench.options(
        __doc__, only=[""], base=str, rounds=3, tolerance=0.1, list=False
    )
    chosen = [name for name in given.only if name] or list(BENCHMARKS)
    unknown = [name for name in chosen if name not in BENCHMARKS]
    if unknown or given.list:
        print(f"Benchmarks: {', '.join(BENCHMARKS)}")
        sys.exit(f"There is no benchmark {unknown[0]!r}." if unknown else 0)
    base = given.base or base_commit()
    print(f"Base: {git('log', '-1', '--format=%h %cs %s', base)}\n")
    worse: list[str] = []
    failed: list[str] = []
    row = bench.table("benchmark", "figure", "base", "now", "ratio", "")
    with checkout(base) as tree:
        for name in chosen:
            benchmark = BENCHMARKS[name]
            try:
                sides = measure(
                    {"base": tree, "now": bench.ROOT}, benchmark, given.rounds
                )
            except RuntimeError as error:
                row(name, str(error)[:120], None, None, None, "not compared")
                failed.append(name)
                continue
            for key, after in sides["now"].items():
                before = sides["base"].get(key)
                figure = f"{key[0]}, {key[1]}"
                if before is None:
                    row(name, figure, None, spread(after), None, "new")
                    continue
                middle = statistics.median(before)
                ratio = statistics.median(after) / middle if middle else None
                verdict = ""
                if any(re.search(benchmark.not_costs, part) for part in key):
                    verdict = "no cost"
                elif is_worse(before, after, given.tolerance):
                    verdict = "WORSE"
                    worse.append(f"{name}: {figure}")
                row(name, figure, spread(before), spread(after), ratio, verdict)
    print(f"\n{len(worse)} figures got worse.", *worse, sep="\n- ")
    if failed:
        print(f"\nNot compared: {', '.join(failed)}.")
    sys.exit(bool(worse or failed))


if __name__ == "__main__":
    main()
