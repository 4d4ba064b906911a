"""`/verdict` on programs with private pools: of CUDA graphs, and of their own."""

from __future__ import annotations

import pytest

from tests.tb_plugin.analysis.made_programs import (
    GIB,
    MIB,
    Program,
    Training,
    at,
    in_loop,
    in_module,
)
from tests.tb_plugin.pages.test_verdict_of_programs import MADE, advice, verdict_of

CAPTURE = [at("capture", 88), *in_loop(30)]
KEPT = in_loop(47)
OWN = "a graph's own pool"
MADE_FOR_IT = "a handle that the program made"


def captured(program, number, kind, *, size=2 * GIB, live=True):
    """A graph in a pool of its own: a workspace, and outputs that stay."""
    pool = (number, 0) if kind is OWN else number
    blocks = [program.alloc(size // 2, CAPTURE, pool=pool) for _ in range(2)]
    program.let_go(*(blocks[:1] if live else blocks))


def graph_per_length(kind, *, live, rounds=30):
    """A training that captures a graph for every new length of its batches."""
    training = Training(weight=64 * MIB)
    for number in range(1, rounds + 1):
        training.step(16 * MIB)
        captured(training, number, kind, live=live)
    return training


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("kind", [OWN, MADE_FOR_IT])
def test_a_graph_for_every_shape_is_nothing_that_steps_retain(tmp_path, kind, live):
    program = graph_per_length(kind, live=live)
    one = verdict_of(tmp_path, program, size=3 * GIB, device_free=GIB)
    assert one["key"] == "private_pools"
    assert "retained" not in one["sentence"]
    assert "30 private memory pools" in one["sentence"]
    assert "60.0 GiB" in one["sentence"]
    assert "growth" not in one["also"]
    said = advice(one)
    assert ".item()" not in said
    assert "share one pool" in said


def test_a_leak_beside_graphs_is_still_a_leak(tmp_path):
    """Six graphs are captured before the training; then each step keeps an output."""
    training = Training(weight=64 * MIB)
    for number in range(1, 7):
        captured(training, number, OWN, size=GIB)
    for _ in range(30):
        training.step(16 * MIB)
        training.alloc(GIB, KEPT)
    one = verdict_of(tmp_path, training, size=2 * GIB, device_free=GIB)
    assert one["key"] == "growth"
    assert "train.py:47" in one["sentence"]
    assert ".item()" in advice(one)


def test_a_leak_within_one_pool_of_the_program_is_growth_there(tmp_path):
    training = Training(weight=64 * MIB)
    for _ in range(30):
        training.step(16 * MIB)
        training.alloc(GIB, KEPT, pool=1)
    one = verdict_of(tmp_path, training, size=2 * GIB, device_free=GIB)
    assert one["key"] == "growth"
    assert "train.py:47" in one["sentence"]
    said = advice(one)
    assert "in private memory pools" in said
    assert ".item()" not in said


def cached_pool(num_blocks):
    program = Program()
    program.alloc(8 * GIB, MADE)
    program.let_go(*(program.alloc(GIB, CAPTURE, pool=1) for _ in range(num_blocks)))
    return program


def test_a_pool_with_nothing_in_use_is_not_live(tmp_path):
    one = verdict_of(tmp_path, cached_pool(40), size=3 * GIB, device_free=GIB, pool=0)
    assert one["key"] == "private_pools"
    assert "40.0 GiB was free in one private memory pool" in one["sentence"]
    assert "which this request may not use" in one["sentence"]
    assert "40.0 GiB was live" not in one["sentence"]
    evidence = {entry["key"]: entry["value"] for entry in one["evidence"]}
    assert evidence["held"] == 8 * GIB
    said = advice(one)
    assert "drop the last reference" in said
    assert "share one pool" not in said


def test_what_a_request_may_not_use_is_unknown_where_its_pool_is(tmp_path):
    one = verdict_of(tmp_path, cached_pool(40), size=3 * GIB, device_free=GIB)
    assert "40.0 GiB was free in one private memory pool" in one["sentence"]
    assert "may not use" not in one["sentence"]
    assert "is not recorded" in one["sentence"]


@pytest.mark.parametrize(("pool", "is_known"), [(0, True), (None, False)])
def test_a_block_that_would_have_fitted_likewise(tmp_path, pool, is_known):
    program = Program()
    program.alloc(8 * GIB, MADE)
    program.let_go(program.alloc(40 * GIB, CAPTURE, pool=1))
    asked = {"size": 3 * GIB, "device_free": GIB, "frames": in_module(22)}
    one = verdict_of(tmp_path, program, **asked, pool=pool)
    assert one["key"] == "fitting_block_free"
    assert ("is not recorded" in one["sentence"]) != is_known


def test_a_request_of_the_pool_itself_finds_its_free_memory_in_pieces(tmp_path):
    one = verdict_of(tmp_path, cached_pool(40), size=3 * GIB, device_free=GIB, pool=1)
    assert one["key"] == "fragmented"
    assert "private_pools" not in one["also"]
