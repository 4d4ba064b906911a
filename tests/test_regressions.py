"""The comparison of benchmarks with an earlier commit reads tables, and noise is no news."""

from __future__ import annotations

import io
from contextlib import nullcontext, redirect_stdout

import pytest

from tests.perf import bench, regressions
from tests.perf.regressions import BENCHMARKS, figures_of, is_worse


def printed(*rows: tuple[object, ...]) -> str:
    with redirect_stdout(io.StringIO()) as output:
        row = bench.table(*rows[0])
        for cells in rows[1:]:
            row(*cells)
    return output.getvalue()


def test_numbers_are_known_by_row_and_column():
    text = "Snapshots\n\n" + printed(
        ("events", "way", "s", "peak MB"),
        (1_000_000, "import", 1.46, 86),
        (1_000_000, "pickle", 8.78, 947),
        (3_000_000, "import", 4.1, None),
    )
    assert figures_of(text) == {
        ("1,000,000 | import", "s"): 1.46,
        ("1,000,000 | import", "peak MB"): 86,
        ("1,000,000 | pickle", "s"): 8.78,
        ("1,000,000 | pickle", "peak MB"): 947,
        ("3,000,000 | import", "s"): 4.1,
    }


def test_the_first_number_of_a_cell_counts_and_equal_rows_stay_apart():
    text = printed(("Overhead", ""), ("on", "+431 us +1.76%"), ("lowest", "2.5 us"))
    text += printed(("Overhead", ""), ("lowest", "3.5 us"))
    assert sorted(figures_of(text).values()) == [2.5, 3.5, 431]


@pytest.mark.parametrize(
    ("before", "after", "worse"),
    [
        ([1.0, 1.1, 1.0], [1.3, 1.25, 1.4], True),
        ([1.0, 1.3, 1.0], [1.25, 1.4, 1.5], False),  # inside the base's range
        ([1.0, 1.0, 1.0], [1.05, 1.05, 1.05], False),  # below the tolerance
        ([1.0, 1.0, 1.0], [0.5, 0.5, 0.5], False),
        ([0.0], [0.1], True),
    ],
)
def test_worse_is_more_than_tolerance_and_noise(before, after, worse):
    assert is_worse(before, after, 0.1) is worse


@pytest.mark.parametrize(("failing", "status"), [(None, 0), ("base", 1), ("now", 1)])
def test_what_could_not_be_compared_fails(
    monkeypatch, capsys, tmp_path, failing, status
):
    """A script that fails has not shown that nothing got worse."""

    def run(tree, benchmark):
        side = "now" if tree == bench.ROOT else "base"
        if side == failing and benchmark is BENCHMARKS["merge"]:
            raise RuntimeError("ImportError: no such module")
        return {("rows", "s"): 1.0}

    monkeypatch.setattr(regressions, "run", run)
    monkeypatch.setattr(regressions, "checkout", lambda _: nullcontext(tmp_path))
    monkeypatch.setattr(regressions, "git", lambda *_: "a commit")
    arguments = ["regressions", "--base", "HEAD", "--only", "step", "merge"]
    monkeypatch.setattr("sys.argv", arguments)
    with pytest.raises(SystemExit) as ended:
        regressions.main()
    assert int(ended.value.code or 0) == status
    assert ("Not compared: merge." in capsys.readouterr().out) == (failing is not None)


def test_every_benchmark_that_is_compared_exists():
    for benchmark in BENCHMARKS.values():
        assert (bench.ROOT / "tests/perf" / f"{benchmark.module}.py").is_file()
