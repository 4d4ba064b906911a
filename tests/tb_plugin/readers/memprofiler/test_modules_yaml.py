"""`rank_R_fsdp_memory_stats.yaml`: many calls in one file, read one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.formats.memprofiler.imports import Imports, Window
from memboard.tb_plugin.formats.memprofiler.modules_yaml import find_calls, read_call
from memboard.tb_plugin.formats.memprofiler.stats import UnreadableError
from tests.memprofiler_files import opened, sizes_of, write_report

if TYPE_CHECKING:
    from pathlib import Path


def call_of(rank: int, iteration: int) -> dict:
    """What a report of that call holds too, in the file's own form."""
    states = ("Before Pre-Forward", "After Post-Forward")
    return {
        "peak": {"cuda:0": sizes_of(rank, iteration, 0)},
        "modules": {
            module: {
                state: [{"cuda:0": sizes_of(rank, iteration, place)}]
                for state in states
            }
            for place, module in enumerate(("FSDPNet", "FSDPNet.layers.0"), start=1)
        },
    }


def text_of(calls: dict) -> str:
    return yaml.safe_dump(calls, sort_keys=False, width=1000)


def write_modules(folder: Path, rank: int, iterations: tuple[int, ...]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rank_{rank}_fsdp_memory_stats.yaml"
    calls = {f"{rank}.training_step.{i}": call_of(rank, i) for i in iterations}
    path.write_text(text_of(calls))
    return path


def total(imports: Imports, window: Window, rank: int, module: str) -> float:
    report = imports.report(window, rank)
    assert report is not None
    states = report.states
    table = states.at("after_post_forward", 0, None)
    return table.total_bytes[states.tree.fqn.index(module)]


def test_the_calls_of_a_file_are_windows_with_exact_bytes(tmp_path):
    for rank in (0, 1):
        write_modules(tmp_path, rank, (2, 3))
    imports = opened(tmp_path)
    assert imports.found.ranks == [0, 1]
    assert {w: set(ranks) for w, ranks in imports.windows.items()} == {
        Window("training_step", "train", 2): {0, 1},
        Window("training_step", "train", 3): {0, 1},
    }
    for rank in (0, 1):
        for iteration in (2, 3):
            window = Window("training_step", "train", iteration)
            expected = sizes_of(rank, iteration, 2)["Total"]
            assert total(imports, window, rank, "FSDPNet.layers.0") == expected
            report = imports.report(window, rank)
            assert report is not None
            assert report.rounding_bytes == 0
            peak = report.states.at("window_peak", 0, None).total_bytes[0]
            assert peak == sizes_of(rank, iteration, 0)["Total"]
    assert imports.check(Budget(60))
    assert list(imports.problems) == []


def test_exact_bytes_count_where_a_report_of_the_call_is_beside_them(tmp_path):
    """A report may be rounded and shallow; it stands for calls that no other file has."""
    path = write_modules(tmp_path, 0, (2, 3))
    log = write_report(tmp_path, 0, 2)
    text = log.read_text().replace(
        f"Total: {sizes_of(0, 2, 1)['Total']} B", "Total: 777 B"
    )
    log.write_text(text)
    alone = write_report(tmp_path, 0, 4)
    imports = opened(tmp_path)
    second, third, fourth = (Window("training_step", "train", i) for i in (2, 3, 4))
    assert {w: f[0].path for w, f in imports.windows.items()} == {
        second: str(path.resolve()),
        third: str(path.resolve()),
        fourth: str(alone.resolve()),
    }
    for window in (second, third, fourth):
        expected = sizes_of(0, window.iteration, 1)["Total"]
        assert total(imports, window, 0, "FSDPNet") == expected
    path.unlink()
    assert total(opened(tmp_path), second, 0, "FSDPNet") == 777
    log.write_text("Traceback\n")
    imports = opened(tmp_path)
    assert total(imports, fourth, 0, "FSDPNet") == sizes_of(0, 4, 1)["Total"]
    assert imports.check(Budget(60))
    (problem,) = imports.problems
    assert problem.path.endswith("_2.log")


@pytest.mark.parametrize(
    "name", ["a b", "it's", 'say "x"', "a: b", "ü", "x.2.y", "-", "# no"]
)
def test_functions_whose_names_hold_anything_are_found(name):
    calls = {f"0.{name}.{i}": call_of(0, i) for i in (2, 3)}
    data = text_of(calls).encode()
    found = find_calls(data, 0)
    found_names = [(c.function.function, c.iteration) for c in found.calls]
    assert found_names == [(name, 2), (name, 3)]
    assert read_call(data, found.calls[1]).left_out.num == 0


def test_what_is_wrong_is_named_and_hides_nothing_else(tmp_path):
    calls = {
        "0.f.2": call_of(0, 2),
        "1.f.2": call_of(0, 2),  # another rank's
        "f": call_of(0, 2),
        "0.f.3": {"peak": 3, "modules": call_of(0, 2)["modules"]},
        "0.f.4": {"modules": {"M": {"No State": [], "Pre-Forward": [{"cpu": {}}]}}},
        "0.f.5": {"modules": {"M": {"Pre-Forward": [{"cpu": {"Total": "many"}}]}}},
        "0.f.6": {},
        "0.f.7": call_of(0, 2),
    }
    path = tmp_path / "rank_0_fsdp_memory_stats.yaml"
    text = text_of(calls)
    path.write_text(text[: text.rindex("Total") + 3])  # and cut off
    imports = opened(tmp_path)
    assert {window.iteration for window in imports.windows} == {2, 3, 4, 5, 6, 7}
    assert imports.check(Budget(60))
    told = [problem.what for problem in imports.problems]
    assert sum("another rank" in what for what in told) == 1
    assert any("names no rank.function.iteration" in what for what in told)
    assert any("where a mapping was expected" in what for what in told)
    assert any("No State is not a state" in what for what in told)
    assert any("many is not a size" in what for what in told)
    assert any("f 7 breaks off" in what for what in told)
    assert imports.report(Window("f", "train", 6), 0) is None
    assert imports.report(Window("f", "train", 7), 0) is not None
    whole = imports.report(Window("f", "train", 2), 0)
    assert whole is not None
    assert whole.left_out.num == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- 1\n",
        "a: b\n",
        "\x00\n",
        "'0.f.2: {}\n",
        "!!python/object/apply:os.system ['touch /tmp/never']\n",
        "{" * 5000,
    ],
)
def test_a_file_without_calls_is_unreadable(text):
    with pytest.raises(UnreadableError):
        find_calls(text.encode(), 0)


HOSTILE = [
    "0.f.2: &a [*a]\n",
    "? 0.f.2\n: {}\n",
    "0.f.2:\n  peak: !!python/object/apply:os.system ['x']\n",
    "0.f.2:\n  peak: *unknown\n",
    "0.f.2:\n  peak:\n    cpu: &a {Total: *a}\n",
    "0.f.2:\n  modules:\n    M: !!set {Pre-Forward}\n",
    "0.f.2:\n  modules: " + "[" * 200 + "\n",
    "0.f.2:\n  peak:\n    cpu: {Total: 99999999999999999999999999}\n",
    "0.f.2:\n  peak:\n    cpu: {Total: .inf}\n",
    "0.f.2:\n  peak:\n    cpu: {? [1, 2] : 3}\n",
    "0.f.2:\n  peak: {? {a: b} : {c: 1}}\n",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_a_file_asks_for_is_made(text):
    data = text.encode()
    (call,) = find_calls(data, 0).calls
    try:
        report = read_call(data, call)
    except UnreadableError:
        return
    assert report.left_out.num
    assert report.states.total_bytes.max() <= 0


@given(st.binary(max_size=300), st.integers(0, 2000), st.integers(0, 60))
def test_damage_costs_no_more_than_what_it_hits(junk, at, length):
    data = text_of({f"0.f.{i}": call_of(0, i) for i in (2, 3)}).encode()
    damaged = data[:at] + junk + data[at + length :]
    try:
        found = find_calls(damaged, 0)
    except UnreadableError:
        return
    for call in found.calls:
        try:
            report = read_call(damaged, call)
        except UnreadableError:
            continue
        assert len(report.states.state) <= 400_000


def test_many_calls_are_listed_without_being_read(monkeypatch):
    monkeypatch.setattr(
        "memboard.tb_plugin.formats.memprofiler.modules_yaml.MAX_CALLS", 5
    )
    data = text_of({f"0.f.{i}": {} for i in range(9)}).encode()
    found = find_calls(data, 0)
    assert (len(found.calls), found.left_out.num) == (5, 4)
