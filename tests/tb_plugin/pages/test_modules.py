"""Routes `/modules`, `/module` and `/module_timeline`: what the page asks and gets."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.tb_plugin.analysis.modules.states import WINDOW_STATES
from memboard.tb_plugin.facts.modules import choice as module_choice
from memboard.tb_plugin.facts.modules import columns as module_columns
from memboard.tb_plugin.facts.modules.tracked_peak import tracked_peak
from memboard.tb_plugin.facts.overview import peak_composition
from memboard.tb_plugin.pages.modules import module
from tests.builders import RunBuilder
from tests.tb_plugin.analysis.module_logs import Replay, random_log
from tests.tb_plugin.client import Page, decode, numbers_of, refresh, texts_of
from tests.tb_plugin.pages.module_runs import (
    AFTER_FORWARD,
    META,
    assert_adds_up,
    columns,
    fqns,
    modules,
    net,
    record,
)


def test_after_forward_each_row_has_a_moment_of_its_own(run, tmp_path):
    record(run, logs=(net(), net(batch=200)))
    got = modules(tmp_path, **AFTER_FORWARD)
    assert [w["id"] for w in got["windows"]] == ["step/train/2", "step/train/3"]
    assert [w["step"] for w in got["windows"]] == [2, 3]
    assert got["window"] == "step/train/3"
    assert (got["rank"], got["ranks"].tolist()) == (0, [0])
    assert got["state"] == "after_post_forward"
    assert (got["device"], got["devices"]) == ("cuda:0", ["cuda:0", "cpu"])
    assert fqns(got["tree"]) == ["Net", "Net.a", "Net.b"]
    assert numbers_of(got["table"], "rank_total_bytes").tolist() == [4400, 4200, 4400]
    assert numbers_of(got["table"], "held_bytes").tolist() == [4400, 1200, 3200]
    assert got["split"] is None
    assert columns(got) == {
        "sharded_param": [4000, 4000, 4000],
        "optimizer": [0, 0, 0],
        "activation": [400, 200, 400],
        "temp": [0, 0, 0],
    }
    assert {c["name"]: c["group"] for c in got["categories"]} == {
        "sharded_param": "param",
        "optimizer": "optimizer",
        "activation": "activation",
        "temp": "temp",
    }
    assert numbers_of(got["table"], "num_calls").tolist() == [1, 1, 1]
    assert numbers_of(got["table"], "time_us").tolist() == [11, 8, 11]
    assert (got["call"], got["max_calls"]) == (None, 1)
    assert got["baseline"] is None
    assert got["problems"] == []
    assert got["absent"] == []


@pytest.mark.parametrize(
    ("state", "total", "held", "own", "temp", "rest"),
    [
        (None, [4800] * 3, [4800, 1800, 3000], [0, 1800, 3000], [700, 700, 0], {}),
        ("after_optimizer", [4700] * 3, [4200, 1100, 3100], [0, 1100, 3100], [0] * 3,
         {"optimizer": 500}),
        ("peak_forward", [4800, 4800, 4240], [4800, 1800, 3140], None,
         [700, 700, 40], None),
    ],
)  # fmt: skip
def test_rows_hold_what_was_planted(run, tmp_path, state, total, held, own, temp, rest):
    """The page opens at the peak; what no module holds is a figure of its own."""
    record(run)
    got = modules(tmp_path, **({} if state is None else {"state": state}))
    assert (got["state"], got["measure"]) == (state or "window_peak", "held")
    assert numbers_of(got["table"], "rank_total_bytes").tolist() == total
    assert numbers_of(got["table"], "held_bytes").tolist() == held
    assert own is None or numbers_of(got["table"], "own_bytes").tolist() == own
    assert columns(got)["temp"] == temp
    split = got["split"]
    if rest is None:  # each row has a moment of its own
        assert split is None
        return
    assert_adds_up(got)
    assert split["unattributed_bytes"] == sum(rest.values())
    assert all(f"{name} states" in got["lead"]["rest"] for name in rest)


def test_a_state_that_is_not_there_has_a_default(run, tmp_path):
    record(run)
    assert modules(tmp_path, state="peak_backward")["state"] == "window_peak"


@pytest.mark.parametrize("seed", range(4))
def test_rows_and_the_rest_add_up_at_every_moment(run, tmp_path, seed: int):
    record(run, logs=(random_log(seed),))
    page = Page(tmp_path)
    moments = page.of_run("/modules", "exp")["states"]
    for state in [one["state"] for one in moments]:
        got = page.of_run("/modules", "exp", state=state)
        if state in WINDOW_STATES:
            assert_adds_up(got)
        else:
            assert got["split"] is None


def test_delta_against_another_state(run, tmp_path):
    record(run)
    got = modules(tmp_path, **AFTER_FORWARD, against="state:before_pre_forward")
    assert got["baseline"]["kind"] == "state"
    assert got["baseline"]["state"] == "before_pre_forward"
    assert numbers_of(got["table"], "baseline_rank_total_bytes").tolist() == [
        4000,
        4000,
        4100,
    ]
    assert columns(got, "baseline_")["activation"] == [0, 0, 100]


def test_delta_against_another_window_matches_modules_by_name(run, tmp_path):
    before = net(batch=300)
    before.modules[2] = ("Net.z", 0)  # the model was changed in between
    record(run, logs=(before, net()))
    got = modules(tmp_path, **AFTER_FORWARD, against="window:step/train/2")
    assert got["window"] == "step/train/3"
    assert got["baseline"]["window"] == "step/train/2"
    total = numbers_of(got["table"], "baseline_rank_total_bytes").tolist()
    assert total[:2] == [4600, 4300]
    assert np.isnan(total[2])
    assert np.isnan(columns(got, "baseline_")["activation"][2])


def test_delta_against_a_rank_and_the_median(run, tmp_path):
    for rank, scale in enumerate((1, 2, 3, 10)):
        # Each rank calls its device by its own number.
        devices = [f"cuda:{rank}", "cpu"]
        record(run, rank, (net(scale),), {"devices": devices})
    page = Page(tmp_path)
    got = page.of_run("/modules", "exp", **AFTER_FORWARD, rank=1, against="rank:3")
    assert got["device"] == "cuda:1"
    assert numbers_of(got["table"], "rank_total_bytes").tolist() == [8400, 8200, 8400]
    assert numbers_of(got["table"], "baseline_rank_total_bytes").tolist() == [
        42_000,
        41_000,
        42_000,
    ]
    assert got["baseline"]["rank"] == 3
    got = page.of_run(
        "/modules", "exp", rank=0, against="median", state="after_post_forward"
    )
    assert got["baseline"]["num_ranks"] == got["baseline"]["of_ranks"] == 4
    assert got["baseline"]["rank"] is None
    assert numbers_of(got["table"], "baseline_rank_total_bytes").tolist() == [
        10_500,
        10_250,
        10_500,
    ]
    assert numbers_of(got["table"], "baseline_held_bytes").tolist() == [
        10_500,
        2750,
        7750,
    ]
    assert columns(got, "baseline_")["activation"] == [500, 250, 250]


def test_the_tracked_step_with_the_highest_recorded_peak_is_shown_first(run, tmp_path):
    record(run, 0, (net(), net(), net()), peaks={3: 8000})
    record(run, 1, (net(), net()), peaks={2: 6000, 4: 9000})
    page = Page(tmp_path)

    def shown(**query) -> tuple[str, int]:
        got = page.of_run("/modules", "exp", **query)
        return got["window"], got["rank"]

    # Step 4 of rank 1 is higher, and was not tracked.
    assert shown() == ("step/train/3", 0)
    assert shown(rank=1) == ("step/train/2", 1)
    assert shown(window="step/train/2") == ("step/train/2", 1)
    # Of equal ones the newest; a rank that did not track the step asked for gives way.
    assert shown(window="step/train/4", rank=1) == ("step/train/4", 0)


def test_what_takes_most_is_named(run, tmp_path):
    """The lowest module with most of the largest category, or that no module has it."""
    record(run, logs=(net(),))
    lead = modules(tmp_path)["lead"]
    assert (lead["before"], lead["module"]) == ("Sharded parameters of ", "Net.b")
    assert lead["after"].startswith(" are 2.93 KiB of the ")
    log = net()
    log.alloc(9000, "other", -1)
    record(run, 1, (log,), peak=5000)
    lead = modules(tmp_path, state="window_end")["lead"]
    assert (lead["before"], lead["module"]) == (
        "Other allocations outside all modules",
        None,
    )
    assert lead["after"].startswith(" are 8.79 KiB of the ")


def test_the_rank_with_the_highest_recorded_peak_is_shown_first(run, tmp_path):
    record(run, 0, peak=5000)
    record(run, 1, peak=9000)
    record(run, 2, peak=7000, logs=())
    page = Page(tmp_path)
    got = page.of_run("/modules", "exp")
    assert (got["rank"], got["ranks"].tolist()) == (1, [0, 1])
    assert page.of_run("/modules", "exp", rank=0)["rank"] == 0
    assert page.of_run("/modules", "exp", rank=2)["rank"] == 1


def test_calls_of_a_module(run, tmp_path):
    built = random_log(3, 5, 3)
    record(run, logs=(built,))
    page = Page(tmp_path)
    replay = Replay(built)
    for call in range(3):
        got = page.of_run("/modules", "exp", **AFTER_FORWARD, call=call)
        assert (got["call"], got["max_calls"]) == (call, 3)
        moment = replay.moments(0, "after_post_forward")[call]
        total = numbers_of(got["table"], "rank_total_bytes")
        assert total[0] == sum(replay.held(moment).values())


def test_a_restarted_job_keeps_its_first_attempt_s_windows(run, tmp_path):
    for attempt in (0, 1):
        file = run.rank(0, attempt=attempt)
        file.steps(range(3), allocated_peak_bytes=[1] * 3)
        file.capture(tables=net().tables(), meta=META, iteration=2)
        file.close()
    got = modules(tmp_path)
    assert [w["id"] for w in got["windows"]] == ["step/train/2", "step/train/2@2"]
    assert [w["attempt"] for w in got["windows"]] == [1, 2]
    assert got["window"] == "step/train/2@2"


def test_what_was_not_listed_yet_is_not_called_missing(run, tmp_path, monkeypatch):
    record(run)
    monkeypatch.setattr(module_choice, "LISTING_SECONDS", -1)
    monkeypatch.setattr("memboard.tb_plugin.facts.ranks.error_states._SECONDS", -1)
    page = Page(tmp_path)
    got = page.of_run("/modules", "exp")
    assert got["window"] is None
    (absent,) = got["absent"]
    assert "still being read" in absent["reason"]
    monkeypatch.setattr(module_choice, "LISTING_SECONDS", 60)
    assert page.of_run("/modules", "exp")["window"] == "step/train/2"


def test_a_damaged_capture_is_named_and_another_rank_is_shown(run, tmp_path):
    record(run, 0)
    file = run.rank(1)
    file.steps(range(10), allocated_peak_bytes=[9000] * 10)
    entry = file.capture(tables=net().tables(), meta=META, iteration=2, step=2)
    file.close()
    data = bytearray(file.path.read_bytes())
    data[entry.offset + entry.num_bytes // 2] ^= 0xFF
    file.path.write_bytes(bytes(data))
    page = Page(tmp_path)
    got = page.of_run("/modules", "exp")
    assert got["rank"] == 0
    assert numbers_of(got["table"], "held_bytes").tolist() == [4800, 1800, 3000]
    named = 'capture "modules" of step, call 2 cannot be read'
    for _ in range(2):  # found while answering; then a known problem of the run
        told = [p for p in got["problems"] if named in p["what"]]
        assert [p["rank"] for p in told] == [1]
        refresh(page)
        got = page.of_run("/modules", "exp")
    asked = page.of_run("/modules", "exp", rank=1)
    assert (asked["rank"], asked["window"]) == (1, "step/train/2")
    assert asked["table"]["num_rows"] == 0


def test_a_log_without_its_columns_is_named(run, tmp_path):
    file = run.rank(0)
    tables = net().tables()
    tables["events"]["delta_bytes"] = tables["events"]["delta_bytes"] * 0.5
    file.capture(tables=tables, meta={"devices": 7, "reasons": "no list"}, iteration=2)
    file.close()
    got = modules(tmp_path)
    (problem,) = got["problems"]
    assert "events.delta_bytes does not hold whole numbers" in problem["what"]
    assert problem["rank"] == 0


def test_nonsense_in_a_log_is_counted(run, tmp_path):
    tables = net().tables()
    tables["events"]["category"][2] = 99
    tables["events"]["delta_bytes"][0] = -5000
    file = run.rank(0)
    meta = {**META, "num_events_dropped": 7, "optimizers": -1, "torch": None}
    file.capture(tables=tables, meta=meta, iteration=2)
    file.close()
    got = modules(tmp_path, **AFTER_FORWARD)
    words = [problem["what"] for problem in got["problems"]]
    assert any("1 invalid values of this capture" in text for text in words)
    assert any(
        "more memory was freed than had been allocated" in text for text in words
    )
    assert any("7 events did not fit" in text for text in words)
    assert columns(got)["other"] == [100, 100, 100]
    said = " ".join(got["fact_words"])
    assert "optimizer" not in said
    assert "torch" not in said


def test_one_module_over_states_windows_and_ranks(run, tmp_path):
    for rank in range(3):
        record(run, rank, (net(rank + 1), net(rank + 1, batch=200)))
    got = Page(tmp_path).of_run(
        "/module", "exp", rank=1, module="Net.a", state="after_post_forward"
    )
    assert (got["module"], got["path"], got["type"]) == ("Net.a", "a", "Linear")
    assert (got["window"], got["rank"]) == ("step/train/3", 1)
    assert (got["param_bytes"], got["buffer_bytes"]) == (512, 0)
    moments = got["moments"]
    assert texts_of(moments, "state_name") == [
        "before_pre_forward",
        "peak_forward",
        "after_post_forward",
    ]
    assert texts_of(moments, "state")[1] == "peak in forward"
    assert numbers_of(moments, "at_us").tolist() == [5, 6, 8]
    assert numbers_of(moments, "rank_total_bytes").tolist() == [8000, 9800, 8400]
    assert numbers_of(moments, "held_bytes").tolist() == [2000, 3800, 2400]
    over = got["over_windows"]
    assert (over["windows"], over["of_windows"]) == (
        ["step/train/2", "step/train/3"],
        2,
    )
    assert over["step"].tolist() == [2, 3]
    assert over["total_bytes"].tolist() == [8200, 8400]
    ranks = got["over_ranks"]
    assert (ranks["rank"].tolist(), ranks["of_ranks"]) == ([0, 1, 2], 3)
    assert ranks["total_bytes"].tolist() == [4200, 8400, 12_600]
    assert ranks["held_bytes"].tolist() == [1200, 2400, 3600]


def test_one_module_over_many_ranks_comes_bit_by_bit(run, tmp_path, monkeypatch):
    for rank in range(6):
        record(run, rank, (net(rank + 1),))
    monkeypatch.setattr(module, "MODULE_SECONDS", 0)
    page = Page(tmp_path)
    got = page.of_run("/module", "exp", rank=3, module="Net")
    ranks = got["over_ranks"]
    assert (ranks["rank"].tolist(), ranks["of_ranks"]) == ([3], 6)
    etag = page.raw("/module", run=page.run_id("exp"), module="Net").headers["ETag"]
    monkeypatch.setattr(module, "MODULE_SECONDS", 60)
    # The answer was cut short, so the same question is not answered by a 304.
    again = page.raw(
        "/module",
        run=page.run_id("exp"),
        module="Net",
        headers={"If-None-Match": etag},
    )
    assert decode(again)["over_ranks"]["rank"].tolist() == [0, 1, 2, 3, 4, 5]


def test_the_median_says_of_how_many_ranks_it_is(run, tmp_path, monkeypatch):
    for rank in range(8):
        record(run, rank, (net(rank + 1),))
    monkeypatch.setattr(module_columns, "MAX_MEDIAN_BYTES", 400)
    got = modules(tmp_path, against="median")
    assert (got["baseline"]["num_ranks"], got["baseline"]["of_ranks"]) == (3, 8)
    # Ranks 0, 4 and 2: spread over all rather than the first ones.
    assert numbers_of(got["table"], "baseline_rank_total_bytes")[0] == 3 * 4800


def test_an_unknown_module_is_not_found(run, tmp_path):
    record(run)
    page = Page(tmp_path)
    answer = page.raw("/module", run=page.run_id("exp"), module="Net.<b>")
    assert answer.status_code == 404
    assert "no such module" in answer.json["what"]


def test_timeline_stacks_categories_and_names_calls(run, tmp_path):
    record(run)
    page = Page(tmp_path)
    got = page.of_run("/module_timeline", "exp", px=13)
    assert (got["x_low"], got["x_high"], got["axis"]) == (0, 13, "time")
    total = got["total_bytes"].tolist()
    assert total == [4000] * 5 + [4100, 4800, 4800, 4200, 4240, 4240, 4200, 4700]
    sums = np.sum([c["bytes"] for c in got["categories"]], axis=0)
    assert sums.tolist() == total
    spans = got["spans"]
    assert [spans["modules"][m] for m in spans["module"]] == ["Net", "Net.a", "Net.b"]
    assert spans["depth"].tolist() == [0, 1, 1]
    assert (spans["x0"].tolist(), spans["x1"].tolist()) == ([5, 5, 8], [11, 8, 11])
    assert [(m["kind"], m["x"]) for m in got["marks"]] == [
        ("before_optimizer", 12),
        ("after_optimizer", 13),
        ("peak", 6),
    ]
    part = page.of_run("/module_timeline", "exp", px=4, x0=5, x1=9, axis="event")
    assert (part["x0"], part["x_per_column"]) == (5, 1)
    assert part["x_high"] == 9


def test_modules_named_otherwise_than_their_parent_stand_alone(run, tmp_path):
    built = net()
    built.modules[1] = ("Elsewhere.<script>", 0)
    record(run, logs=(built,))
    tree = modules(tmp_path)["tree"]
    assert fqns(tree) == ["Net", "Elsewhere.<script>", "Net.b"]
    assert tree["parent"].tolist() == [-1, -1, 0]


def test_what_a_peak_is_made_of_is_computed_once_for_each_unit(tmp_path, monkeypatch):
    num_computed = 0

    def counted(memory, device):
        nonlocal num_computed
        num_computed += 1
        return tracked_peak(memory, device)

    monkeypatch.setattr(peak_composition, "tracked_peak", counted)
    record(RunBuilder(tmp_path / "exp"))
    page = Page(tmp_path)
    first = page.of_run("/peak_composition", "exp")
    assert first["composition"]["holders"]
    assert page.of_run("/peak_composition", "exp") == first
    assert num_computed == 1
    page.of_run("/peak_composition", "exp", unit="MiB")
    assert num_computed == 2
