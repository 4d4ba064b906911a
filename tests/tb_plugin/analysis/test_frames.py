"""Kinds of frames, and their labels."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.categories.frames import (
    KINDS,
    NO_STACK,
    frame_label,
    kind_of,
    native_label,
    stack_label,
)
from tests.tb_plugin.analysis.snapshots import (
    EXPECTED,
    named,
    needs_real,
    real,
    stacks_of,
)


@pytest.mark.parametrize(
    ("filename", "kind"),
    [
        ("/home/me/project/models.py", "user"),
        ("C:\\research\\fed\\client.py", "user"),
        ("/tmp/ipykernel_114/3105878423.py", "user"),
        ("<ipython-input-3-9f>", "user"),
        ("<stdin>", "user"),
        ("/home/me/collector/train.py", "user"),
        ("<string>", "user"),
        ("/home/me/torch_tricks/layers.py", "user"),
        ("/opt/v/lib/python3.11/site-packages/transformers/modeling.py", "library"),
        ("/usr/lib/python3/dist-packages/numpy/core.py", "library"),
        ("/usr/lib64/python3.9/threading.py", "library"),
        (
            "C:\\uv\\python\\cpython-3.10.19-windows-x86_64-none\\lib\\copy.py",
            "library",
        ),
        ("<frozen importlib._bootstrap>", "library"),
        ("/home/me/.vscode-server/bundled/libs/debugpy/__main__.py", "library"),
        ("/v/lib/python3.11/site-packages/torch/nn/modules/module.py", "torch"),
        ("E:\\.venv\\lib\\site-packages\\torch\\nn\\functional.py", "torch"),
        ("/home/me/src/pytorch/torch/nn/modules/linear.py", "torch"),
        ("/tmp/torchinductor_me/fy/cfynmy2umdm4.py", "torch"),
        ("??", "native"),
        ("", "native"),
        ("RegisterCUDA_0.cpp", "native"),
        ("/build/glibc/nptl/pthread_create.c", "native"),
    ],
)
def test_whose_a_file_is(filename, kind):
    assert KINDS[kind_of(filename)] == kind


TORCH = "/v/site-packages/torch/nn/modules/linear.py"
LIBRARY = "/v/site-packages/einops/einops.py"


def test_the_user_frame_is_the_innermost_of_the_best_kind():
    stacks = stacks_of(
        [
            ("f", "??", 0),
            ("forward", TORCH, 5),
            ("g", "/me/a.py", 7),
            ("h", "/me/b.py", 8),
        ],
        [("f", "??", 0), ("forward", TORCH, 5), ("einsum", LIBRARY, 9)],
        [("forward", TORCH, 5), ("outer", TORCH, 6)],
        [("at::_ops::mm::call(at::Tensor)", "??", 0)],
        [],
    )
    found = stacks.user_frame
    assert found.tolist() == [2, 4, 1, NOTHING, NOTHING]
    labels = [stack_label(stacks, row) for row in range(len(found))]
    assert labels == [
        "a.py:7 g",
        "einops.py:9 einsum",
        "linear.py:5 forward",
        "mm",
        NO_STACK,
    ]
    assert stacks_of().user_frame.tolist() == []
    assert stacks_of([], []).user_frame.tolist() == [NOTHING, NOTHING]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("at::_ops::add_Tensor::redispatch(c10::DispatchKeySet, at::Tensor)", "add"),
        ("at::_ops::mm::call(at::Tensor const&, at::Tensor const&)", "mm"),
        (
            "torch::autograd::generated::MmBackward0::apply(std::vector<>&&)",
            "MmBackward0",
        ),
        ("torch::autograd::AccumulateGrad::apply(std::vector<>&&)", "AccumulateGrad"),
        ("torch::cuda::(anonymous namespace)::gather_with_cpp()", "gather_with_cpp"),
        ("start_thread", "start_thread"),
    ],
)
def test_native_functions_in_short(name, label):
    assert native_label(name) == label
    assert frame_label(name, "??", 0) == label


def test_a_free_without_python_is_the_engines():
    stacks = stacks_of(
        [
            ("torch::unwind::unwind()", "??", 0),
            ("torch::autograd::Engine::evaluate_function(std::shared_ptr<>&)", "", 0),
        ]
    )
    assert stack_label(stacks, 0) == "torch::autograd::Engine"


@needs_real
def test_the_lines_of_a_recorded_training_are_its_own():
    snapshot = real(named("Constructor-Sun"))
    kinds = snapshot.stacks.kinds
    own = {
        snapshot.stacks.filename[frame].rsplit("/", 1)[-1]
        for frame in np.flatnonzero(kinds == KINDS.index("user")).tolist()
    }
    assert own == {"models.py", "trainers.py", "start_train.py"}


@pytest.mark.parametrize("name", EXPECTED)
def test_every_recorded_stack_with_python_has_a_user_frame(name):
    stacks = real(name).stacks
    kinds = stacks.kinds
    for stack, frame in enumerate(stacks.user_frame.tolist()):
        frames = stacks.of(stack)
        best = kinds[frames].min(initial=KINDS.index("native"))
        if best == KINDS.index("native"):
            assert frame == NOTHING
        else:
            assert frame == frames[np.argmax(kinds[frames] == best)]
        assert stack_label(stacks, stack)
