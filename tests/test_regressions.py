"""The comparison of benchmarks with an earlier commit reads tables, and noise is no news."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import pytest

from tests.perf import bench
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


def test_every_benchmark_that_is_compared_exists():
    for benchmark in BENCHMARKS.values():
        assert (bench.ROOT / "tests/perf" / f"{benchmark.module}.py").is_file()
