"""MemProfiler's log directories as runs: found, read when asked, what is wrong named."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from memboard.collector.format.names import EXPORT_MARK
from memboard.tb_plugin.analysis.series.functions import calls_of, sides
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.formats.memprofiler.imports import Window
from memboard.tb_plugin.formats.memprofiler.names import FunctionKey
from tests.builders import RunBuilder
from tests.memprofiler_files import (
    dumps_in,
    opened,
    sizes_of,
    write_report,
    write_stats,
)
from tests.tb_plugin import logdirs
from tests.tb_plugin.client import Page, refresh
from tests.tb_plugin.readers.traces.reading import document, event

TRAINING = FunctionKey("training_step", "train")


@pytest.mark.parametrize("kinds", [("yaml",), ("pickle",), ("yaml", "pickle")])
def test_snaps_of_a_rank_pair_into_calls(tmp_path, kinds):
    for rank in (0, 3):
        write_stats(tmp_path, rank, kinds=kinds, iterations=(2, 3, 10))
    imports = opened(tmp_path)
    assert imports.found.ranks == [0, 3]
    tables = imports.snaps(3)
    assert tables.keys() == {TRAINING}
    snaps = tables[TRAINING]
    calls = calls_of(snaps)
    assert calls.iteration.tolist() == [2, 3, 10]
    start, end, difference = sides(snaps, calls, "rss_bytes")
    assert start.tolist() == [3_002_001, 3_003_001, 3_010_001]
    assert difference.tolist() == (end - start).tolist() == [1, 1, 1]
    hooks = sides(snaps, calls, "hook.npp_diff")
    assert hooks[2].tolist() == [6_815_744] * 3
    assert sides(snaps, calls, "hook.rss_diff")[1].tolist() == [393_216] * 3
    assert "allocated_bytes.all.current" in snaps.stats
    assert "num_ooms" in snaps.stats
    assert list(imports.problems) == []


def test_a_pickle_stands_in_for_a_yaml_that_cannot_be_read(tmp_path):
    write_stats(tmp_path, 0, kinds=("yaml", "pickle"))
    (tmp_path / "rank_0_memory_stats.yaml").write_text("- 1\n")
    imports = opened(tmp_path)
    assert len(imports.snaps(0)[TRAINING]) == 4
    (problem,) = imports.problems
    assert problem.path.endswith("rank_0_memory_stats.yaml")
    assert problem.severity == "error"
    assert problem.rank == 0


def test_reports_are_windows_by_name_and_states_when_opened(tmp_path):
    for rank in (0, 1):
        for iteration in (2, 3):
            write_report(tmp_path, rank, iteration)
    imports = opened(tmp_path)
    window = Window("training_step", "train", 3)
    assert set(imports.windows) == {Window("training_step", "train", 2), window}
    assert set(imports.windows[window]) == {0, 1}
    peaks = set()
    for each in imports.windows:
        report = imports.report(each, 1)
        assert report is not None
        peaks.add(report.states.at("window_peak", 0, None).total_bytes[0])
    assert len(peaks) == 2, "each has its own, where MemProfiler prints the last one's"
    states = imports.report(window, 1).states
    table = states.at("after_post_forward", 0, None)
    of_layer = states.tree.fqn.index("FSDPNet.layers.0")
    assert table.total_bytes[of_layer] == sizes_of(1, 3, 2)["Total"]
    assert states.tree.parent[of_layer] == states.tree.fqn.index("FSDPNet")
    assert imports.report(window, 7) is None


def test_captures_of_the_allocator_are_named_and_never_opened(tmp_path):
    path = tmp_path / "cuda_alloc_rank_0.training_step.2.end.pickle"
    path.write_bytes(b"\x80\x04not a pickle")
    imports = opened(tmp_path)
    (file,) = imports.snapshots.of_rank(0)
    assert file.said.function == "training_step"
    assert file.num_bytes == path.stat().st_size
    assert imports.check(Budget(10))
    assert list(imports.problems) == []


def test_a_phase_before_the_function_is_a_phase(tmp_path):
    write_report(tmp_path, 0, 2, function="val.step")
    (window,) = opened(tmp_path).windows
    assert window == Window("step", "val", 2)


def test_what_is_wrong_is_named_and_hides_nothing_else(tmp_path):
    write_stats(tmp_path, 0)
    write_stats(tmp_path, 1)
    good = (tmp_path / "rank_1_memory_stats.yaml").read_text()
    (tmp_path / "rank_2_memory_stats.yaml").write_text(good)  # another rank's
    write_stats(tmp_path, 3)
    cut = tmp_path / "rank_3_memory_stats.yaml"
    cut.write_text(cut.read_text()[: good.rindex("rss_diff") + 3])
    (tmp_path / "rank_4_memory_stats.pickle").write_bytes(b"\x80\x04}")
    (tmp_path / "rank_5_memory_stats.yaml").write_text("")
    whole = write_report(tmp_path, 0, 2).read_text()
    (tmp_path / "fsdp_mem_rank_0_training_step_3.log").write_text(whole[:900])
    (tmp_path / "fsdp_mem_rank_0_training_step_4.log").write_text("Traceback\n")
    imports = opened(tmp_path)
    assert imports.check(Budget(10))
    wrong = {Path(p.path).name: p for p in imports.problems}
    assert set(wrong) == {
        "rank_2_memory_stats.yaml",
        "rank_3_memory_stats.yaml",
        "rank_4_memory_stats.pickle",
        "rank_5_memory_stats.yaml",
        "fsdp_mem_rank_0_training_step_3.log",
        "fsdp_mem_rank_0_training_step_4.log",
    }
    assert all(p.what and p.remedy for p in wrong.values())
    assert wrong["rank_3_memory_stats.yaml"].where.startswith("line ")
    assert wrong["rank_3_memory_stats.yaml"].salvaged == "4 snaps"
    assert len(imports.snaps(0)[TRAINING]) == 4
    assert imports.report(Window("training_step", "train", 2), 0) is not None


def test_a_file_too_large_is_not_read(tmp_path):
    with (tmp_path / "rank_0_memory_stats.yaml").open("wb") as file:
        file.truncate(200 << 20)
    imports = opened(tmp_path)
    assert imports.snaps(0) == {}
    (problem,) = imports.problems
    assert "too large" in problem.what


def test_links_are_followed_to_files_of_such_names_alone(tmp_path):
    outside = tmp_path / "outside"
    write_stats(outside, 0)
    inside = tmp_path / "logdir" / "memprofiler"
    inside.mkdir(parents=True)
    (inside / "rank_0_memory_stats.yaml").symlink_to(
        outside / "rank_0_memory_stats.yaml"
    )
    secret = tmp_path / "secret.yaml"
    secret.write_text("secret: 1")
    (inside / "rank_3_memory_stats.yaml").symlink_to(secret)
    os.mkfifo(inside / "rank_1_memory_stats.yaml")
    (inside / "rank_2_memory_stats.yaml").mkdir()
    listing = dumps_in(inside, tmp_path / "logdir")
    assert [file.rank for file in listing.found.files] == [0]
    assert sorted(problem.rank for problem in listing.problems) == [1, 2, 3]
    assert not listing.list_files()


def test_a_recording_in_the_same_directory_is_another_run(tmp_path):
    RunBuilder(tmp_path / "exp").simple(1, 5)
    write_stats(tmp_path / "exp", 0)
    names = {run["name"] for run in Page(tmp_path).get("/runs")["runs"]}
    assert names == {"exp", "exp (MemProfiler)"}


def test_our_own_export_is_shown_only_where_its_run_is_not(tmp_path):
    RunBuilder(tmp_path / "exp").simple(1, 5)
    for folder in (tmp_path / "exp" / "memprofiler", tmp_path / "elsewhere"):
        write_stats(folder, 0)
        (folder / EXPORT_MARK).write_text("{}")
    names = {run["name"] for run in Page(tmp_path).get("/runs")["runs"]}
    assert names == {"exp", "elsewhere"}


def runs_at(page: Page) -> dict[str, tuple[str, int, int]]:
    """Made of, ranks and number of traces, by name of the run."""
    return {
        run["name"]: (
            run["made_of"],
            run["num_ranks"],
            page.get("/traces", run=run["id"])["num_files"],
        )
        for run in page.get("/runs")["runs"]
    }


@pytest.mark.parametrize(
    "trace", ["fit-profile-0.pt.trace.json", "a/rank0.pt.trace.json", ""]
)
def test_the_standard_layout_is_one_run_of_one_job(tmp_path, trace):
    """`version_0/memprofiler`, and in `version_0` what the profiler wrote."""
    job = tmp_path / "lightning_logs" / "version_0"
    for rank in (0, 1):
        write_stats(job / "memprofiler", rank)
        write_report(job / "memprofiler", rank, 2)
    if trace:
        logdirs.write(job / trace, document([event("a", 1, 5)]))
    expected = ("memprofiler", 2, int(bool(trace)))
    assert runs_at(Page(tmp_path)) == {"lightning_logs/version_0": expected}
    assert runs_at(Page(job)) == {"version_0": expected}
    assert runs_at(Page(job / "memprofiler")) == {"memprofiler": ("memprofiler", 2, 0)}


def test_a_jobs_trace_joins_its_run_whichever_comes_first(tmp_path):
    job = tmp_path / "version_0"
    trace = logdirs.write(job / "rank0.pt.trace.json", document([event("a", 1, 5)]))
    page = Page(tmp_path)
    assert runs_at(page) == {"version_0": ("traces", 1, 1)}
    write_stats(job / "memprofiler", 0)
    refresh(page)
    assert runs_at(page) == {"version_0": ("memprofiler", 1, 1)}
    run_id = page.run_id("version_0")
    trace.unlink()
    refresh(page)
    assert runs_at(page) == {"version_0": ("memprofiler", 1, 0)}
    assert page.run_id("version_0") == run_id


def test_beside_a_recording_a_jobs_dumps_are_another_tools_run(tmp_path):
    RunBuilder(tmp_path / "version_0").simple(1, 5)
    write_stats(tmp_path / "version_0" / "memprofiler", 0)
    logdirs.write(
        tmp_path / "version_0" / "rank0.pt.trace.json", document([event("a", 1, 5)])
    )
    assert runs_at(Page(tmp_path)) == {
        "version_0": ("recording", 1, 1),
        "version_0 (MemProfiler)": ("memprofiler", 1, 0),
    }


def test_files_that_come_change_and_go_are_followed(tmp_path):
    folder = tmp_path / "version_0" / "memprofiler"
    write_stats(folder, 0)
    page = Page(tmp_path)
    run_id = page.run_id("version_0")
    (folder / "rank_0_memory_stats.yaml").write_text("- 1\n")
    write_report(folder, 5, 2)
    refresh(page)
    assert page.get("/overview", run=run_id)["run"]["num_ranks"] == 2
    assert len(page.get("/overview", run=run_id)["problems"]) == 1
    for path in folder.iterdir():
        path.unlink()
    refresh(page)
    assert page.get("/runs")["runs"] == []


def test_a_check_gives_way(tmp_path):
    for iteration in range(2, 30):
        write_report(tmp_path, 0, iteration)
    imports = opened(tmp_path)
    assert not imports.check(Budget(-1))
    assert imports.check(Budget(60))
    assert np.isfinite(imports.found.newest_ns)


def test_a_directory_of_nothing_that_can_be_opened_is_named(tmp_path):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "rank_0_memory_stats.yaml").symlink_to("gone.yaml")
    page = Page(tmp_path)
    (run,) = page.get("/runs")["runs"]
    assert (run["name"], run["num_ranks"]) == ("theirs", 0)
    (problem,) = page.get("/overview", run=run["id"])["problems"]
    assert "leads to nothing" in problem["what"]
