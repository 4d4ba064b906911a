"""Rows of `/modules` that stand for equal layers, and what the page says of a window."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.tb_plugin.analysis.modules.states import ALL_STATES
from memboard.tb_plugin.facts.modules.sentences import (
    caveats_of,
    fact_words,
    moments_of,
)
from memboard.tb_plugin.formats.recording.captures.modules import CaptureFacts
from tests.tb_plugin.analysis.module_logs import LogBuilder, random_log
from tests.tb_plugin.client import Page, numbers_of, texts_of
from tests.tb_plugin.pages.module_runs import (
    AFTER_FORWARD,
    columns,
    fqns,
    headings,
    modules,
    net,
    record,
)


def hybrid(scale: int = 1, *, num: int = 6) -> LogBuilder:
    """A model whose every third layer attends, all others are of another type."""
    log = LogBuilder()
    root = log.module("Net", type_="Net")
    layers = log.module("Net.layers", root, "ModuleList")
    log.at(root, "before_pre_forward")
    for number in range(num):
        kind = "Attention" if number % 3 == 2 else "Mamba"
        layer = log.module(f"Net.layers.{number}", layers, kind)
        inner = log.module(f"Net.layers.{number}.up", layer)
        log.at(layer, "before_pre_forward")
        log.alloc(100 * scale * (number + 1), "sharded_param", inner)
        log.alloc(10 * scale, "activation", layer)
        log.tick()
        log.at(layer, "after_post_forward")
    log.at(root, "after_post_forward")
    return log


def test_layers_of_several_types_are_one_row_for_each(run, tmp_path):
    record(run, logs=(hybrid(),))
    got = modules(tmp_path)
    tree = got["tree"]
    names = fqns(tree)
    mamba, attention = [row for row, at in enumerate(tree["fold"]) if at == row]
    assert names[mamba] == "Net.layers.{0,1,…}"
    assert names[attention] == "Net.layers.{2,5}"
    assert tree["num_equal"].tolist()[mamba] == 4
    kind = texts_of(got["table"], "type")
    assert tree["label"][mamba] == "4 \u00d7 layers.{0,1,…}"
    assert tree["label"][names.index("Net.layers.0")] == "0"
    assert (kind[mamba], kind[attention]) == ("Mamba", "Attention")
    of_mamba = [names[row] for row, at in enumerate(tree["fold"]) if at == mamba]
    assert of_mamba[1:] == [f"Net.layers.{at}" for at in (0, 1, 3, 4)]
    # All other rows are modules, below their own parents.
    real = [name for name in names if "{" not in name]
    assert real[:3] == ["Net", "Net.layers", "Net.layers.0"]
    assert len(real) == 14

    held = dict(
        zip(names, numbers_of(got["table"], "held_bytes").tolist(), strict=True)
    )
    assert held["Net.layers.{0,1,…}"] == 100 * (1 + 2 + 4 + 5) + 4 * 10
    assert held["Net.layers.{2,5}"] == 100 * (3 + 6) + 2 * 10
    assert held["Net.layers"] == sum(held[names[row]] for row in (mamba, attention))
    own = dict(zip(names, numbers_of(got["table"], "own_bytes").tolist(), strict=True))
    assert own["Net.layers.{2,5}"] == 2 * 10
    # The rank's total at some moment is nobody's sum.
    assert np.isnan(
        numbers_of(got["table"], "rank_total_bytes")[[mamba, attention]]
    ).all()
    assert numbers_of(got["table"], "num_calls")[mamba] == 0


def test_the_first_sentence_names_layers_of_one_type(run, tmp_path):
    log = hybrid()
    log.alloc(9000, "sharded_param", log.module("Net.layers.6", 1, "Mamba"))
    record(run, logs=(log,))
    lead = modules(tmp_path)["lead"]
    assert lead["before"] == "Sharded parameters of "
    assert lead["module"] == "Net.layers.{0,1,…}"
    assert lead["after"].startswith(" are 9.96 KiB of the ")


def test_rows_for_layers_have_no_sum_where_each_has_a_moment_of_its_own(run, tmp_path):
    record(run, logs=(hybrid(),))
    got = modules(tmp_path, state="after_post_forward")
    folds = [row for row, at in enumerate(got["tree"]["fold"]) if at == row]
    assert np.isnan(numbers_of(got["table"], "held_bytes")[folds]).all()


def test_the_median_is_of_the_sums_of_layers(run, tmp_path):
    for rank, scale in enumerate((1, 3, 9)):
        record(run, rank, (hybrid(scale),))
    got = modules(tmp_path, rank=0, against="median")
    at = fqns(got["tree"]).index("Net.layers.{2,5}")
    assert numbers_of(got["table"], "baseline_held_bytes")[at] == 3 * 920
    assert got["baseline"]["words"] == "the median of all 3 ranks"


@pytest.mark.parametrize("num", [1, 3])
def test_few_layers_stay_as_they_are(run, tmp_path, num: int):
    record(run, logs=(hybrid(num=num),))
    assert set(modules(tmp_path)["tree"]["fold"].tolist()) == {-1}


def test_the_first_sentence_and_its_words(run, tmp_path):
    record(run)
    got = modules(tmp_path)
    lead = got["lead"]
    assert lead["before"] == "Sharded parameters of "
    assert lead["module"] == "Net.b"
    assert lead["after"] == " are 2.93 KiB of the 4.69 KiB peak, step 2, rank 0."
    assert lead["rest"] == "Modules hold 4.69 KiB."
    (window,) = got["windows"]
    assert (window["words"], window["group"]) == ("step 2, iteration 2", "step")
    assert "peak of the step" not in " ".join(got["fact_words"])
    assert got["caveats"] == [
        {"head": "Note.", "text": "The tie of Net.head is listed once."}
    ]
    later = modules(tmp_path, state="after_optimizer", against="state:window_start")
    assert later["lead"]["after"].endswith("after the optimizer in step 2, rank 0.")
    assert later["lead"]["rest"] == (
        "Modules hold 4.10 KiB; 500 B belongs to no module (optimizer states 500 B)."
        " Shown: the difference from start of the step."
    )
    own = modules(tmp_path, state="after_post_forward")["lead"]
    assert own["module"] is None
    assert own["before"] == "Memory of each module: after post-forward, step 2, rank 0."


def test_the_window_of_a_step_is_shown_or_the_nearest(run, tmp_path):
    record(run, logs=(net(), net(), net()))
    page = Page(tmp_path)
    for step, window in ((3, 3), (4, 4), (99, 4)):
        got = page.of_run("/modules", "exp", step=step)
        assert got["window"] == f"step/train/{window}"
    assert page.of_run("/modules", "exp", step=4, window="step/train/2")["window"] == (
        "step/train/2"
    )


def test_columns_are_the_measure_s_and_the_largest_categories_first(run, tmp_path):
    record(run)
    held = ["Memory", "Own", "Sharded params", "Temp", "Activations"]
    assert headings(modules(tmp_path)) == held
    total = modules(tmp_path, **AFTER_FORWARD)
    assert headings(total) == ["Rank total", "Sharded params", "Activations"]
    # Those that are zero everywhere, and the other measure's, are in files alone.
    assert columns(total)["optimizer"] == [0, 0, 0]
    assert numbers_of(total["table"], "held_bytes").tolist() == [4200, 1100, 3100]
    drawn = [column for column in total["table"]["columns"] if column["title"]]
    assert {column["longest"] for column in drawn} == {4200}
    assert total["table"]["usual"] == "rank_total_bytes"


def test_differences_are_columns_and_both_sides_are_in_files(run, tmp_path):
    record(run)
    got = modules(tmp_path, against="state:after_optimizer")
    # The scratch is gone then, and the optimizer has states: less, and more.
    assert headings(got)[:3] == ["Δ\u00a0Memory", "Δ\u00a0Own", "Δ\u00a0Sharded params"]
    assert numbers_of(got["table"], "temp_change_bytes").tolist() == [700, 700, 0]
    assert got["table"]["usual"] == "held_change_bytes"
    for name in ("temp", "held", "rank_total"):
        ours = numbers_of(got["table"], f"{name}_bytes")
        theirs = numbers_of(got["table"], f"baseline_{name}_bytes")
        if name != "rank_total":
            change = numbers_of(got["table"], f"{name}_change_bytes")
            assert change.tolist() == (ours - theirs).tolist()


def test_a_plain_model_s_parameters_are_a_category_and_a_figure(run, tmp_path):
    log = net()
    log.alloc(64, "param", 1)
    record(run, logs=(log,))
    table = modules(tmp_path, state="window_end")["table"]
    keys = [column["key"] for column in table["columns"]]
    assert len(set(keys)) == len(keys)
    assert numbers_of(table, "param_bytes").tolist() == [64, 64, 0]
    assert numbers_of(table, "own_param_bytes").tolist() == [0, 512, 1024]


def test_which_call_is_a_column_where_modules_are_called_again(run, tmp_path):
    record(run, logs=(random_log(3, 5, 3),))
    assert "Call" in headings(modules(tmp_path, **AFTER_FORWARD, call=1))
    table = modules(tmp_path, **AFTER_FORWARD, call=1)["table"]
    assert texts_of(table, "which_call")[0] == "2 of 3"


def test_every_state_has_words():
    assert {one.state for one in moments_of(ALL_STATES)} == set(ALL_STATES)


def test_doubts_are_said_before_the_numbers():
    facts = CaptureFacts(
        source="recorded",
        backend="fsdp2",
        world="8",
        root="Net",
        estimate="eager estimate",
        incomplete=True,
        inputs="forward",
        num_optimizers=1,
        rounding_bytes=512,
        torch_version="2.13.0",
        num_events=1000,
        num_events_dropped=3,
    )
    heads = [one.head for one in caveats_of(facts)]
    assert heads == ["Eager estimate.", "Incomplete.", "3 events were dropped."]
    assert list(fact_words(facts, (1024.0, 2000.0))) == [
        "peak of the step 1.00 KiB at 2.00 ms",
        "root Net",
        "FSDP2",
        "world size 8",
        "1 optimizer",
        "inputs from the root's forward",
        "sizes rounded up to 512 bytes",
        "1,000 events",
        "torch 2.13.0",
    ]
