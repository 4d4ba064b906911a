"""Headline numbers with known answers, the rank strip, attempts, what was recorded."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from memboard.collector.format.encoding.payload import pack
from memboard.tb_plugin.facts.overview.headline_words import CAVEATS
from tests.builders import GIB, START_NS, RunBuilder, age
from tests.tb_plugin.client import Page, answered, refresh


def said(*caveats: str) -> list[str]:
    return [CAVEATS[one] for one in caveats]


def overview(logdir, **query):
    return Page(logdir).of_run("/overview", "exp", **query)


def headlines(found) -> dict:
    return {headline["key"]: headline for headline in found["headlines"]}


def device_rank(run, number, *, peak=10, steps=100, grow=0, **header):
    """A rank that holds `peak` GiB, grows by `grow` bytes a step, 2 GiB fragmented."""
    rank = run.rank(number, world_size=8, **header)
    s = np.arange(steps)
    held = peak * GIB + grow * s
    rank.steps(
        s,
        allocated_peak_bytes=held,
        reserved_peak_bytes=held + 2 * GIB,
        reserved_bytes=held + GIB,
        num_alloc_retries=s // 50,
        num_ooms=0 * s,
    )
    rank.rows("device_free", s, device_used_bytes=held + 4 * GIB)
    return rank


def test_the_six_device_numbers_name_their_worst_rank(run, tmp_path):
    for number in range(8):
        peak = 30 if number == 5 else 10
        device_rank(run, number, peak=peak, grow=1000 if number == 2 else 0).close()
    found = headlines(overview(tmp_path))
    assert list(found) == [
        "peak_allocated",
        "peak_reserved",
        "headroom",
        "fragmentation",
        "non_torch",
        "growth",
    ]
    values = {key: (h["value"], h["rank"]) for key, h in found.items()}
    assert values["peak_allocated"] == (30 * GIB, 5)
    assert values["peak_reserved"] == (32 * GIB, 5)
    assert values["headroom"] == (80 * GIB - 34 * GIB, 5)
    assert values["fragmentation"][0] == 2 * GIB
    assert values["non_torch"][0] == 3 * GIB
    assert values["growth"] == (pytest.approx(1000), 2)
    assert found["peak_allocated"]["caveats"] == []
    assert found["non_torch"]["caveats"] == said("sampled")
    assert found["growth"]["caveats"] == said("after_warmup")
    assert all(h["absent_reason"] is None for h in found.values())
    assert len(found["peak_allocated"]["sparkline"]) == 100
    assert set(found["peak_allocated"]["sparkline"]) == {30 * GIB}


def test_each_line_is_the_number_itself_over_the_run(run, tmp_path):
    device_rank(run, 0, peak=10, grow=GIB // 10).close()
    found = headlines(overview(tmp_path))
    held = 10 * GIB + GIB // 10 * np.arange(100)
    lines = {key: headline["sparkline"] for key, headline in found.items()}
    assert lines["headroom"].tolist() == (80 * GIB - held - 4 * GIB).tolist()
    assert set(lines["fragmentation"]) == {2 * GIB}
    assert set(lines["non_torch"]) == {3 * GIB}
    assert lines["growth"].tolist() == held.tolist()
    for key in ("headroom", "fragmentation", "non_torch"):
        worst = min if key == "headroom" else max
        assert found[key]["value"] == worst(lines[key])


def test_headroom_without_the_devices_use_is_measured_by_what_torch_reserved(
    run, tmp_path
):
    rank = run.rank(0)
    rank.steps(range(3), allocated_peak_bytes=[1, 2, 3], reserved_peak_bytes=[4, 9, 4])
    rank.close()
    line = headlines(overview(tmp_path))["headroom"]["sparkline"]
    assert line.tolist() == [80 * GIB - 4, 80 * GIB - 9, 80 * GIB - 4]


@pytest.mark.parametrize(
    ("used", "left"), [([50, 70, 60], [50, 30, 40]), (None, [80, 59, 40])]
)
def test_the_hosts_headroom_is_what_the_host_or_its_ranks_leave(
    run, tmp_path, used, left
):
    limits = {"device_total_bytes": None, "memory_total_bytes": 100, "device_type": ""}
    for number in range(2):
        rank = run.rank(number, world_size=2, host="h", **limits)
        rank.steps(range(3), rss_bytes=[10, 20 + number, 30])
        if number == 0 and used:
            rank.rows("memory", range(3), memory_used_bytes=used)
        rank.close()
    found = headlines(overview(tmp_path))["rss_headroom"]
    assert found["sparkline"].tolist() == left
    assert found["value"] == min(left)


def test_the_step_time_of_a_growing_run_is_always_one_that_was_recorded(run, tmp_path):
    ranks = [
        run.rank(number, world_size=2, device_total_bytes=None) for number in (0, 1)
    ]
    page = None
    for step in range(60):
        for rank in ranks:
            taken = None if step == 0 else 0.1 + 0.001 * (step * 7 % 11)
            rank.steps([step], rss_bytes=[step], step_time_seconds=[taken])
            if step in (26, 27, 45):
                rank.digest()
        page = page or Page(tmp_path)
        refresh(page)
        value = headlines(page.of_run("/overview", "exp"))["step_time"]["value"]
        assert (value is None) == (step == 0)
        assert step == 0 or 0.0999 < value < 0.1101


def test_a_table_that_got_more_columns_later_keeps_both_parts(run, tmp_path):
    rank = run.rank(0)
    rank.steps(range(5), rss_bytes=[1] * 5, step_time_seconds=[0.1] * 5)
    rank.steps(
        range(5, 10),
        rss_bytes=[2] * 5,
        step_time_seconds=[0.1] * 5,
        allocated_peak_bytes=[7] * 5,
    )
    live = headlines(overview(tmp_path))
    assert live["peak_allocated"]["value"] == 7
    assert live["peak_allocated"]["step"] == 5
    rank.close()
    assert headlines(overview(tmp_path)).keys() == live.keys()


def test_fragmentation_is_what_stayed_unused_even_at_the_fullest_step(run, tmp_path):
    rank = run.rank()
    rank.steps(
        range(4),
        allocated_peak_bytes=[1, 6, 9, 3],
        reserved_peak_bytes=[5, 10, 10, 10],
    )
    rank.close()
    found = headlines(overview(tmp_path))["fragmentation"]
    assert (found["value"], found["step"]) == (1, 2)


def test_peaks_keep_their_exact_step_in_long_runs(run, tmp_path):
    rank = run.rank()
    values = np.full(6000, 100)
    values[4321] = 900
    rank.steps(range(6000), allocated_peak_bytes=values)
    rank.close()
    found = headlines(overview(tmp_path))["peak_allocated"]
    assert (found["value"], found["step"]) == (900, 4321)
    assert len(found["sparkline"]) <= 120
    assert np.nanmax(found["sparkline"]) == 900


def test_a_peak_in_steps_that_were_run_again_still_counts(run, tmp_path):
    first = run.rank(job="a")
    first.steps(range(10), allocated_peak_bytes=[1] * 9 + [99])
    second = run.rank(job="b", attempt=1)
    second.steps(range(5, 20), allocated_peak_bytes=[2] * 15)
    second.close()
    assert headlines(overview(tmp_path))["peak_allocated"]["value"] == 99


def host_rank(run, number, **header):
    """A rank without an accelerator on a host of 64 GiB."""
    rank = run.rank(
        number,
        world_size=4,
        device_type="cpu",
        device_total_bytes=None,
        memory_total_bytes=64 * GIB,
        **header,
    )
    s = np.arange(60)
    rank.steps(
        s,
        rss_bytes=(2 + number) * GIB + 4096 * s,
        step_time_seconds=[5.0] * 3 + [0.5 + 0.1 * number] * 57,
    )
    return rank


def test_without_an_accelerator_the_host_numbers_stand(run, tmp_path):
    for number in range(4):
        rank = host_rank(run, number, host="box")
        if number == 0:
            rank.rows("memory", range(60), memory_used_bytes=[20 * GIB] * 60)
            rank.rows("cpu", range(60), cpu_total_pct=[40.0] * 59 + [90.0])
        if number == 1:
            rank.rows("workers", range(60), workers_rss_bytes=[3 * GIB] * 60)
        rank.close()
    found = overview(tmp_path)
    numbers = headlines(found)
    assert list(numbers) == [
        "rss_peak",
        "rss_headroom",
        "rss_growth",
        "step_time",
        "cpu",
        "workers_rss",
    ]
    assert (numbers["rss_peak"]["value"], numbers["rss_peak"]["rank"]) == (
        5 * GIB + 4096 * 59,
        3,
    )
    assert numbers["rss_headroom"]["value"] == 44 * GIB
    assert numbers["rss_headroom"]["caveats"] == said("sampled", "no_limit")
    assert numbers["rss_growth"]["value"] == pytest.approx(4096)
    assert numbers["step_time"]["value"] == pytest.approx(0.8, rel=1e-6)
    assert numbers["step_time"]["rank"] == 3
    assert numbers["cpu"]["value"] == 40
    assert numbers["workers_rss"]["value"] == 3 * GIB
    assert found["run"]["device_type"] == "cpu"
    assert found["strip"]["capacity_kind"] == "host_memory"
    assert found["strip"]["peak_series"] == "step/rss_bytes"


def test_the_control_groups_limit_comes_before_the_hosts_memory(run, tmp_path):
    for number in range(2):
        host_rank(run, number, host="box", memory_limit_bytes=16 * GIB).close()
    found = overview(tmp_path)
    headroom = headlines(found)["rss_headroom"]
    # Its use was not recorded: the ranks' own peaks add up.
    assert headroom["value"] == 16 * GIB - (2 + 3) * GIB - 2 * 4096 * 59
    assert headroom["caveats"] == said("sampled")
    assert found["strip"]["capacity_kind"] == "cgroup_limit"


def test_an_absent_number_says_why(run, tmp_path):
    rank = host_rank(run, 0)
    rank.source("workers", "absent", "no dataloader workers", "")
    rank.close()
    found = headlines(overview(tmp_path))
    assert found["workers_rss"]["value"] is None
    assert found["workers_rss"]["absent_reason"] == "no dataloader workers"
    assert found["cpu"]["absent_reason"] == "it was not recorded"


def test_few_steps_are_said(run, tmp_path):
    device_rank(run, 0, steps=20).close()
    found = headlines(overview(tmp_path))["growth"]
    assert found["value"] == 0
    assert CAVEATS["few_steps"] in found["caveats"]


def test_peaks_that_are_never_reset_are_marked(run, tmp_path):
    device_rank(run, 0, config={"device_peaks": "run"}).close()
    assert headlines(overview(tmp_path))["peak_allocated"]["caveats"] == said(
        "cumulative_peak"
    )


def test_the_strip_has_one_entry_per_rank(run, tmp_path):
    for number in range(10):
        rank = device_rank(run, number, peak=50 if number == 9 else 10 + number / 100)
        if number != 4:
            rank.close()
    age(tmp_path)
    strip = overview(tmp_path)["strip"]
    assert strip["rank"].tolist() == list(range(10))
    assert strip["peak_bytes"][9] == 50 * GIB
    assert strip["capacity_bytes"].tolist() == [80 * GIB] * 10
    assert strip["num_ooms"].tolist() == [0] * 10
    assert strip["lost"].tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]
    assert strip["outliers"] == [9]
    table = {one["key"]: one for one in strip["table"]["columns"]}
    assert table["host"]["texts"] == ["host0"] * 8 + ["host1"] * 2
    assert table["num_alloc_retries"]["numbers"].tolist() == [1] * 10
    assert table["last_step"]["numbers"].tolist() == [99] * 10
    assert table["share"]["numbers"][9] == 50 / 80
    assert table["lost"]["texts"] == ["", "", "", "", "lost", "", "", "", "", ""]
    assert strip["table"]["colours"] == ["room"] * 10


def test_counters_add_up_over_attempts(run, tmp_path):
    for attempt in range(2):
        rank = run.rank(attempt=attempt, job=str(attempt))
        rank.steps(
            range(3),
            allocated_peak_bytes=[1] * 3,
            num_ooms=[0, 1, 2],
            num_alloc_retries=[3] * 3,
        )
        rank.close()
    strip = overview(tmp_path)["strip"]
    assert strip["num_ooms"].tolist() == [4]
    (retries,) = [
        one["numbers"].tolist()
        for one in strip["table"]["columns"]
        if one["key"] == "num_alloc_retries"
    ]
    assert retries == [6]


def test_one_rank_narrows_everything(run, tmp_path):
    for number in range(8):
        device_rank(run, number, peak=10 + number).close()
    found = overview(tmp_path, rank=3)
    assert found["rank"] == 3
    assert found["strip"]["rank"].tolist() == list(range(8)), "it stands among all"
    assert headlines(found)["peak_allocated"]["value"] == 13 * GIB


def test_what_was_recorded_is_counted_by_rank_and_the_last_word_counts(run, tmp_path):
    for number in range(3):
        rank = device_rank(run, number)
        rank.source("device")
        rank.source("gpu", "absent", "no NVML", "pip install nvidia-ml-py")
        rank.source("cpu")
        if number == 2:
            rank.source("cpu", "failed", "it raised", "See the log.")
        rank.close()
    found = overview(tmp_path)
    recorded = {r["source"]: r["num_ranks"] for r in found["recorded"]}
    assert recorded == {"device": 3, "cpu": 2}
    missing = [(g["status"], g["sources"], g["reason"]) for g in found["missing"]]
    assert missing == [
        ("failed", ["cpu"], "it raised"),
        ("absent", ["gpu"], "no NVML"),
    ]
    one = overview(tmp_path, rank=2)["missing"]
    assert one[0]["sources"] == ["cpu"]


def test_equal_reasons_are_said_once_and_hosts_measured_once_are_no_absence(
    run, tmp_path
):
    for number in range(2):
        rank = device_rank(run, number)
        rank.source("disk_io", "off", "no")
        rank.source("network", "off", "no")
        rank.source("swap", "absent" if number == 0 else "off", "no swap")
        if number == 0:
            rank.source("cpu")
        else:
            rank.source("cpu", "off", "once for all")
        rank.close()
    found = overview(tmp_path)
    cpu = next(one for one in found["recorded"] if one["source"] == "cpu")
    assert (cpu["num_ranks"], cpu["elsewhere"]) == (1, "once for all")
    missing = {(g["status"], *g["sources"]) for g in found["missing"]}
    assert missing == {("off", "disk_io", "network"), ("absent", "swap")}
    # The page of a rank that leaves it to another one.
    other = {
        (g["status"], *g["sources"]) for g in overview(tmp_path, rank=1)["missing"]
    }
    assert other == {
        ("off", "disk_io", "network"),
        ("absent", "swap"),
        ("elsewhere", "cpu"),
    }


def test_facts_come_from_the_headers(run, tmp_path):
    for number in range(6):
        device_rank(
            run, number, host=f"n{number}", mesh={"dp": number // 2, "tp": number % 2}
        ).close()
    facts = {f["label"]: f["value"] for f in overview(tmp_path)["facts"]}
    assert facts["Device"] == "Test accelerator"
    assert facts["PyTorch"] == "2.13.0"
    assert facts["Hosts"] == "n0, n1, n2, n3 (+2)"
    assert facts["Device mesh"] == "dp=3 tp=2"
    one = {f["label"]: f["value"] for f in overview(tmp_path, rank=5)["facts"]}
    assert one["Place in the device mesh"] == "dp=2 tp=1"


def test_dropped_rows_are_counted_once(run, tmp_path):
    rank = device_rank(run, 0)
    rank.note("dropped", 3, table="step", num_rows=5, reason="x")
    rank.note("dropped", 4, table="step", num_rows=9, reason="x")
    rank.note("dropped", 4, table="cpu", num_rows=1, reason="x")
    rank.close()
    facts = {f["label"]: f["value"] for f in overview(tmp_path)["facts"]}
    assert facts["Dropped rows"] == "10"


def test_fields_of_other_types_do_not_break_a_page(run, tmp_path):
    rank = run.rank()
    odd = replace(
        rank.header, host={"a": 1}, mesh="x", device_total_bytes="big", versions=[1]
    )
    rank.path.unlink()
    broken = run.rank(
        **{
            f: getattr(odd, f)
            for f in ("host", "mesh", "device_total_bytes", "versions")
        }
    )
    broken.steps(range(3), allocated_peak_bytes=[1, 2, 3])
    broken.append("note", pack({"kind": "source", "time_ns": 1, "step": "x"}))
    broken.note("source", name=["a"], status={})
    broken.note("epoch", step=1, epoch={"deep": [1]})
    page = Page(tmp_path)
    found = {
        route: page.of_run(route, "exp")
        for route in ("/overview", "/timeline", "/heatmap", "/host")
    }
    assert found["/timeline"]["lines"][0]["y"].tolist() == [1, 2, 3]
    assert found["/timeline"]["capacity_bytes"] is None
    assert all(isinstance(name, str) for name in found["/host"]["hosts"])


def standings(page) -> list[tuple]:
    """Names of the runs with how they stand, the one that needs a look first."""
    found = page.get("/runs")
    names = {run["id"]: run["name"] for run in found["runs"]}
    return [
        (names[one["run"]], one["status"], one["peak_bytes"])
        for one in found["standings"]
    ]


def test_the_worst_run_of_the_newest_day_comes_first(tmp_path):
    noon = START_NS - START_NS % (86_400 * 10**9) + 12 * 3600 * 10**9

    def recorded(name, hours, *, ooms=0, grow=0, ends=True):
        start_ns = noon + hours * 3600 * 10**9
        rank = RunBuilder(tmp_path / name).rank(start_ns=start_ns, world_size=1)
        s = np.arange(100)
        held = 10 * GIB + grow * s
        columns = {"num_ooms": ooms * (s > 90), "allocated_bytes": held}
        rank.steps(s, allocated_peak_bytes=held, **columns)
        if ends:
            rank.close()
        age(tmp_path / name)

    recorded("yesterday", -24, ooms=1)
    recorded("oom", 0, ooms=1)
    recorded("leak", 1, grow=GIB // 20)
    recorded("lost", 2, ends=False)
    recorded("fine", 3)
    page = Page(tmp_path)
    found = answered(
        lambda: standings(page), lambda all_: None not in [one[1] for one in all_]
    )
    peak = 10 * GIB
    assert found == [
        ("oom", "out_of_memory", peak),
        ("leak", "leak", peak + 99 * (GIB // 20)),
        ("lost", "stopped", peak),
        ("fine", "fine", peak),
        ("yesterday", "out_of_memory", peak),
    ]


def test_large_runs_are_read_for_the_list_of_runs_a_little_at_each_poll(run, tmp_path):
    for number in range(65):
        device_rank(run, number).close()
    page = Page(tmp_path)
    assert standings(page) == [("exp", None, None)]
    # Also whether anything is wrong, before anybody opens it.
    answered(lambda: standings(page), lambda got: got[0][1] is not None)
    assert standings(page) == [("exp", "fine", 10 * GIB)]


def empty_tabs(found) -> set[str]:
    return {one["tab"] for one in found["empty"]}


def test_tabs_without_data_say_how_to_get_it(run, tmp_path):
    rank = device_rank(run, 0)
    rank.close()
    found = overview(tmp_path)
    traced = {"operators", "kernels", "distributed"}
    without = {"blocks", "segments", "modules", "calls", "compare", *traced}
    assert empty_tabs(found) == without
    (calls,) = (one for one in found["empty"] if one["tab"] == "calls")
    assert calls["missing"] == "No profiled calls in this run"
    assert "@mb.profiled" in calls["how"]
