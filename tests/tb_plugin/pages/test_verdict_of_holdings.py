"""`/verdict` on hand-made programs: private pools, fetched batches, losses, passes."""

from __future__ import annotations

import pytest

from tests.made_snapshots import frame
from tests.tb_plugin.analysis.made_programs import (
    CALL,
    GIB,
    LINEAR,
    MIB,
    TORCH,
    Program,
    Training,
    at,
    in_loop,
    in_module,
)
from tests.tb_plugin.pages.test_verdict_of_programs import (
    MADE,
    SIDE,
    advice,
    verdict_of,
)

CAPTURE = [at("capture", 88), *in_loop(30)]


def graphs(num: int, *, live: int, free: int) -> Program:
    """A model of 8 GiB, and graphs whose pools keep what they once used, in GiB."""
    program = Program()
    program.alloc(8 * GIB, MADE)
    for pool in range(1, num + 1):
        program.alloc(live * GIB, CAPTURE, pool=pool)
        program.let_go(
            *(program.alloc(GIB, CAPTURE, pool=pool) for _ in range(free)),
        )
    return program


def test_what_is_free_in_private_pools_is_a_cause(tmp_path):
    one = verdict_of(tmp_path, graphs(4, live=1, free=5), size=2 * GIB, device_free=GIB)
    assert one["key"] == "private_pools"
    assert "20.0 GiB was free in 4 private memory pools" in one["sentence"]
    (first, *_) = one["advice"]
    assert "reserve 24.0 GiB in 4 pools" in first["text"]
    assert "share one pool" in first["text"]
    decisive = {e["key"]: e["value"] for e in one["evidence"] if e["decisive"]}
    assert decisive == {"private_free": 20 * GIB, "private_pools": 24 * GIB}


def test_a_block_of_a_pool_that_would_have_fitted_says_more(tmp_path):
    program = graphs(4, live=1, free=5)
    program.let_go(program.alloc(3 * GIB, CAPTURE, pool=1))
    one = verdict_of(tmp_path, program, size=2 * GIB, device_free=GIB)
    assert one["key"] == "fitting_block_free"
    assert "private_pools" not in one["also"]


def test_pools_in_use_are_not_free(tmp_path):
    one = verdict_of(tmp_path, graphs(3, live=7, free=0), size=2 * GIB, device_free=GIB)
    assert one["key"] == "really_full"
    assert "private_pools" not in one["also"]


LOSS = [
    frame("cross_entropy", 3494, TORCH + "nn/functional.py"),
    frame("forward", 1331, TORCH + "nn/modules/loss.py"),
    *CALL,
    *in_loop(42),
]


@pytest.mark.parametrize("size", [GIB // 8, 4 * GIB])
def test_the_loss_over_a_vocabulary_is_named_where_it_holds_much(tmp_path, size):
    training = Training(weight=GIB)
    training.step(16 * MIB)
    training.forward(256 * MIB)
    training.alloc(size, LOSS)
    one = verdict_of(tmp_path, training, frames=LOSS)
    is_named = "The loss over the vocabulary holds 4.00 GiB" in advice(one)
    assert is_named == (size == 4 * GIB)


THREAD = [
    frame("run", 1012, "/usr/lib/python3.12/threading.py"),
    frame("_bootstrap", 1032, "/usr/lib/python3.12/threading.py"),
]


@pytest.mark.parametrize("num", [1, 9])
def test_batches_fetched_ahead_by_a_thread_are_named(tmp_path, num):
    fetched = [at("fill", 31, "/home/me/feeder.py"), *THREAD]
    program = Program()
    program.alloc(8 * GIB, MADE)
    for _ in range(num):
        program.alloc(9 * GIB // num, fetched, stream=SIDE)
    said = advice(verdict_of(tmp_path, program))
    words = "9 blocks of 9.00 GiB at feeder.py:31 fill wait on the device"
    assert (words in said) == (num > 1)


def test_a_model_that_a_thread_calls_is_no_fetching(tmp_path):
    program = Program()
    program.alloc(8 * GIB, MADE)
    called = [LINEAR, *CALL, at("serve", 12), *THREAD]
    for _ in range(9):
        program.alloc(GIB, called)
    assert "fetched ahead" not in advice(verdict_of(tmp_path, program))


NATIVE = [
    frame("gather_with_cpp()", 0, "memory_snapshot.cpp"),
    frame("at::detail::empty_generic(c10::IntArrayRef)", 0, "EmptyTensor.cpp"),
]
MULTIPLY = [LINEAR, *CALL, at("serve", 12), *THREAD]


@pytest.mark.parametrize("frames", [MULTIPLY, [*NATIVE, *MULTIPLY]])
def test_workspaces_of_a_stack_on_many_streams_all_count(tmp_path, frames):
    program = Program()
    program.alloc(2 * GIB, MADE)
    for number in range(64):
        program.alloc(32 * MIB, frames, stream=SIDE + number % 8)
    said = advice(verdict_of(tmp_path, program, frames=MULTIPLY))
    assert "cuBLAS workspaces hold 2.00 GiB in 64 blocks" in said
    # Nothing of them is a forward's.
    assert "No backward follows" not in said


def test_a_tensor_whose_cpp_names_no_workspace_is_none(tmp_path):
    program = Program()
    program.alloc(GIB // 2, MADE)
    for number in range(4):
        program.alloc(32 * MIB, [*NATIVE, *MULTIPLY], stream=SIDE + number)
    assert "cuBLAS" not in advice(verdict_of(tmp_path, program))


def scored(line: int) -> list[dict]:
    """By a function whose name says nothing, of a training that has its own."""
    inner = at("forward", line, "/home/me/model.py")
    return [LINEAR, *CALL, inner, *CALL, at("run_split", 61), *in_loop(50)]


def test_a_pass_by_functions_that_no_backward_followed_is_named(tmp_path):
    training = Training(weight=16 * MIB)
    for _ in range(3):
        training.step(16 * MIB)
    for layer in range(8):
        training.alloc(GIB // 2, scored(21 + layer))
    one = verdict_of(tmp_path, training, frames=scored(28))
    assert "No backward follows" in advice(one)
    assert "keeps 4.00 GiB for gradients" in advice(one)


def test_a_pass_beside_one_of_the_training_is_not(tmp_path):
    """A teacher behind its student: the backward of both is still to come."""
    training = Training(weight=16 * MIB)
    for _ in range(3):
        training.step(16 * MIB)
    training.forward(16 * MIB)
    for layer in range(8):
        training.alloc(GIB // 2, scored(21 + layer))
    one = verdict_of(tmp_path, training, frames=scored(28))
    assert "No backward follows" not in advice(one)


def test_a_segment_that_goes_in_a_forward_makes_it_no_backward(tmp_path):
    """It bears the stack it came with, of the backward: the pass goes on all the same."""
    training = Training(weight=16 * MIB)
    for _ in range(5):
        training.step(16 * MIB)
    backward = frame("_engine_run_backward", 856, TORCH + "autograd/graph.py")
    cached = training.alloc(GIB, [backward, *in_loop(43)])
    training.let_go(cached)
    training.alloc(2 * MIB, in_loop(45))
    for layer in range(8):
        training.alloc(GIB // 2, evaluated(21 + layer))
        if layer == 6:
            training.give_back(cached)
    one = verdict_of(tmp_path, training, frames=evaluated(28))
    assert "No backward follows: 1 forward pass" in advice(one)
    assert "keeps 4.00 GiB for gradients" in advice(one)


def evaluated(line: int) -> list[dict]:
    inner = at("forward", line, "/home/me/model.py")
    return [LINEAR, *CALL, inner, *CALL, at("evaluate", 61), *in_loop(50)]


@pytest.mark.parametrize(("times", "is_longer"), [(1.1, False), (3, True)])
def test_a_batch_longer_than_all_before_is_named(tmp_path, times, is_longer):
    training = Training(weight=256 * MIB)
    for _ in range(5):
        training.step(400 * MIB)
    unit = int(400 * MIB * times)
    training.alloc(unit // 4, in_loop(40))
    for _ in range(5):
        training.alloc(unit, in_module(22))
    training.alloc(max(1, training.peak_bytes - training.live_bytes), MADE)
    one = verdict_of(tmp_path, training, size=unit, device_free=0)
    words = "This batch is longer or larger than those before it"
    assert (words in advice(one)) == is_longer
    if is_longer:
        assert "3.0 times the largest earlier one of the same call" in advice(one)
