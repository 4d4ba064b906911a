"""Modules of stacks, by their lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.categories.forward_modules import forward_modules
from tests.tb_plugin.analysis.snapshots import stacks_of

TORCH_NN = "/env/lib/python3.11/site-packages/torch/nn/modules/"
CALL = ("_call_impl", TORCH_NN + "module.py", 1784)


def labels_of(made: list[list[tuple[str, str, int]]]) -> list[str | None]:
    found = forward_modules(stacks_of(*made))
    return [found.labels[row] if row >= 0 else None for row in found.of_stack.tolist()]


def forward(line: int) -> tuple[str, str, int]:
    return ("forward", "/home/me/model.py", line)


MAIN = ("main", "/home/me/train.py", 9)
LINEAR = ("forward", TORCH_NN + "linear.py", 125)


def test_lines_that_were_called_from_the_same_lines_are_one_module():
    block = [CALL, forward(60), CALL, MAIN]
    attention = [CALL, forward(61), CALL, MAIN]
    made = [
        [forward(12), *block],  # a norm, which both lines call
        [forward(12), *attention],
        [forward(14), *block],
        [forward(14), *attention],
        [LINEAR, CALL, forward(30), *block],
        [forward(33), *block],
        [forward(44), *attention],  # called from another line alone
        [forward(60), CALL, MAIN],
        [forward(61), CALL, MAIN],
    ]
    assert labels_of(made) == [
        "model.py:12-14 forward",
        "model.py:12-14 forward",
        "model.py:12-14 forward",
        "model.py:12-14 forward",
        "model.py:30-33 forward",
        "model.py:30-33 forward",
        "model.py:44 forward",
        "model.py:60-61 forward",
        "model.py:60-61 forward",
    ]


def test_lines_far_apart_or_with_others_between_are_two_modules():
    made = [[forward(line), CALL, MAIN] for line in (10, 12, 30, 32)]
    made.append([("__init__", "/home/me/model.py", 31), MAIN])
    assert labels_of(made) == [
        "model.py:10-12 forward",
        "model.py:10-12 forward",
        "model.py:30 forward",
        "model.py:32 forward",
        None,
    ]


def test_without_code_of_the_users_torchs_own_module_stands():
    backward = [("backward", "/env/lib/python3.11/site-packages/torch/_tensor.py", 5)]
    assert labels_of([[LINEAR, CALL, MAIN], backward, []]) == [
        "torch.nn linear",
        None,
        None,
    ]


def test_no_stacks_have_no_modules():
    assert labels_of([]) == []
    assert labels_of([[], []]) == [None, None]


frames = st.tuples(
    st.sampled_from(["forward", "main", "_call_impl"]),
    st.sampled_from(["a.py", "b.py", TORCH_NN + "linear.py", "??", "x.cpp"]),
    st.integers(0, 30),
)


@given(st.lists(st.lists(frames, max_size=6), max_size=12))
def test_only_stacks_with_a_forward_are_in_a_module(made):
    for stack, label in zip(made, labels_of(made), strict=True):
        inside = any(
            name == "forward" and file.endswith(".py") for name, file, _ in stack
        )
        assert (label is not None) == inside
