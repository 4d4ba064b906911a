"""Advice where nothing is wrong: each with its recorded number, and silence without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from memboard.collector.format.snapshots import tables_of
from tests.builders import GIB
from tests.tb_plugin.analysis.module_logs import LogBuilder
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.history_runs import trained
from tests.tb_plugin.pages.module_runs import META
from tests.tb_plugin.pages.profiled import reported

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builders import RankBuilder, RunBuilder

CARD = 80
"""GiB of the builders' device."""


def train(
    run: RunBuilder,
    rank: int = 0,
    *,
    allocated: float = 68,
    reserved: float = 72,
    used: float | None = 74,
    num_steps: int = 100,
    **header: Any,
) -> RankBuilder:
    """A rank with the same peaks, in GiB, at each step."""
    file = run.rank(rank, world_size=2, **header)
    steps = np.arange(num_steps)
    file.steps(
        steps,
        allocated_peak_bytes=np.full(num_steps, allocated * GIB),
        reserved_peak_bytes=np.full(num_steps, reserved * GIB),
        reserved_bytes=np.full(num_steps, reserved * GIB),
        num_ooms=0 * steps,
    )
    if used is not None:
        file.rows(
            "device_free", steps, device_used_bytes=np.full(num_steps, used * GIB)
        )
    return file


def track(
    file: RankBuilder,
    *,
    recomputes: bool = False,
    trains: bool = True,
    device: int = 0,
    **sizes: float,
) -> None:
    """A tracked step that holds `sizes`, in GiB by category, at its peak."""
    log = LogBuilder()
    root = log.module("Net")
    layer = log.module("Net.layer", root)
    log.at(root, "before_pre_forward")
    for category, size in sizes.items():
        log.alloc(int(size * GIB), category, layer, device)
    log.tick()
    log.at(root, "after_post_forward")
    if recomputes:
        log.at(layer, "pre_forward_ac")
        log.at(layer, "post_forward_ac")
    if trains:
        log.at(root, "before_pre_backward")
        log.at(root, "after_post_backward")
    log.tick()
    file.capture(tables=log.tables(), meta=META, step=7, iteration=7)


def advice(logdir: Path, **query: Any) -> list[str]:
    """What the finding about the highest peak advises."""
    answer = Page(logdir).of_run("/findings", "exp", **query)
    (peak,) = (found for found in answer["findings"] if found["key"] == "peak")
    assert bool(peak["advice"]) == bool(peak["rule"])
    keys = {row["key"] for row in peak["evidence"]}
    assert all(set(way["because"]) <= keys for way in peak["advice"])
    return [way["text"] for way in peak["advice"]]


def test_room_is_that_of_the_rank_with_the_least(run, tmp_path):
    train(run, 0, allocated=20, reserved=24, used=30).close()
    train(run, 1, allocated=22, reserved=26, used=38).close()
    (of_all,) = advice(tmp_path)
    assert of_all == (
        "42.0 GiB of the device's 80.0 GiB stay free on rank 1, which has the least left:"
        " there is room for a larger batch."
    )
    (of_rank,) = advice(tmp_path, rank=0)
    assert of_rank.startswith("50.0 GiB of the device's 80.0 GiB stay free on rank 0: ")


def test_page_text_and_markdown_say_the_same(run, tmp_path):
    train(run, allocated=20, reserved=24, used=30).close()
    (text,) = advice(tmp_path)
    page = Page(tmp_path)
    for words in ((), ("--md",), ("--json",)):
        assert text in " ".join(reported(page, *words).split()), words


def test_room_whose_use_by_others_is_unknown_is_not_promised(run, tmp_path):
    train(run, allocated=20, reserved=24, used=None).close()
    assert advice(tmp_path) == []


def test_a_rank_without_numbers_may_have_the_least_room(run, tmp_path):
    train(run, 0, allocated=20, reserved=24, used=30).close()
    train(run, 1, allocated=20, reserved=24, used=None).close()
    assert advice(tmp_path) == []


@pytest.mark.parametrize("used", [61, 74])
def test_a_device_in_use_has_no_room_for_a_larger_batch(run, tmp_path, used):
    train(run, used=used, allocated=54, reserved=56).close()
    assert advice(tmp_path) == []


def test_few_steps_may_not_have_reached_the_peak(run, tmp_path):
    train(run, allocated=20, reserved=24, used=30, num_steps=9).close()
    assert advice(tmp_path) == []


def test_a_limit_on_the_process_leaves_less_than_the_device_has(run, tmp_path):
    limit = "per_process_memory_fraction:0.5"
    train(run, allocated=20, reserved=24, used=30, allocator_settings=limit).close()
    assert advice(tmp_path) == []


def test_what_is_recomputed_with_room_left_may_be_stored(run, tmp_path):
    file = train(run, allocated=20, reserved=24, used=30)
    track(file, param=4, activation=10, recomputes=True)
    file.close()
    (text,) = advice(tmp_path)
    assert "room for a larger batch. Activations are recomputed in backward: " in text


def test_what_is_wrong_comes_before_what_could_be_better(run, tmp_path):
    file = train(run, allocated=20, reserved=24, used=30)
    file.close("exception", "ValueError: no")
    answer = Page(tmp_path).of_run("/findings", "exp")
    assert not any(
        finding["advice"] for finding in answer["findings"] if finding["key"] == "peak"
    )


@pytest.mark.parametrize(
    ("config", "see"),
    [
        ({"history": {"enabled": False}}, "Record the allocator's history"),
        ({"history": {"enabled": True}}, None),
        ({}, None),
    ],
)
def test_reserved_memory_that_no_tensor_uses(run, tmp_path, config, see):
    train(run, 0, allocated=70, reserved=72).close()
    train(run, 1, allocated=58, reserved=73, config=config).close()
    unused = [text for text in advice(tmp_path) if "hold no tensor" in text]
    if see is None:
        assert unused == []
    else:
        (text,) = unused
        assert text.startswith("15.0 GiB of the 73.0 GiB that rank 1 reserves ")
        assert see in text


def test_a_recorded_history_shows_what_pins_unused_memory(run, tmp_path):
    file = train(run, allocated=58, reserved=73)
    file.capture(
        "history", function="", iteration=0, tables=tables_of(trained().snapshot)
    )
    file.close()
    (text,) = advice(tmp_path)
    assert text == (
        "15.0 GiB of the 73.0 GiB that rank 0 reserves hold no tensor, even at the peak."
        " Segments shows what pins it."
    )


def test_a_little_that_is_reserved_and_unused_is_usual(run, tmp_path):
    config = {"history": {"enabled": False}}
    train(run, allocated=62, reserved=72, config=config).close()
    assert advice(tmp_path) == []


def test_activations_that_fill_a_device_can_be_recomputed(run, tmp_path):
    file = train(run)
    track(file, param=8, grad=8, optimizer=8, activation=40)
    file.close()
    (text,) = advice(tmp_path)
    assert text.startswith(
        "Activations are 40.0 GiB, 62.5 % of the peak of step 7 on rank 0, and no module"
        " recomputes them: "
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"recomputes": True},
        {"trains": False},
        {"device": 1},
        {"activation": 12},
        {"activation": 12, "input": 30},
    ],
    ids=["recomputed", "in an evaluation", "of the host", "few", "inputs"],
)
def test_activations_that_need_no_recomputing(run, tmp_path, changed):
    file = train(run)
    track(
        file, **{"param": 12, "grad": 12, "optimizer": 12, "activation": 40, **changed}
    )
    file.close()
    assert advice(tmp_path) == []


def test_optimizer_states_that_are_stored_whole(run, tmp_path):
    file = train(run)
    track(file, sharded_param=10, sharded_grad=10, optimizer=20, activation=20)
    file.close()
    (text,) = advice(tmp_path)
    assert text.startswith(
        "The optimizer's state is 20.0 GiB, 33.3 % of the peak of step 7 on rank 0 and 2.0"
        " times the parameters: in 8 bits "
    )


@pytest.mark.parametrize(
    "sizes",
    [
        {"param": 20, "optimizer": 20},
        {"param": 10, "optimizer": 20, "activation": 20, "temp": 40},
        {"optimizer": 20},
    ],
    ids=["in 8 bits of 16", "a small part", "of unknown parameters"],
)
def test_optimizer_states_that_need_not_shrink(run, tmp_path, sizes):
    file = train(run)
    track(file, **sizes)
    file.close()
    assert advice(tmp_path) == []
