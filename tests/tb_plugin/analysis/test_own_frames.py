"""MemBoard's own frames are nobody's line to look at, in whatever stacks they are."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.collector.format.own.frames import RECORDER, program_frames, role_of
from memboard.tb_plugin.analysis.categories.frames import stack_label, without_own
from tests.tb_plugin.analysis.snapshots import stacks_of

OURS = "/opt/venv/lib/python3.11/site-packages/memboard/collector"
TORCH = "/opt/venv/lib/python3.11/site-packages/torch"
EMPTY = ("at::_ops::empty::call(...)", "??", 0)
LINEAR = ("forward", f"{TORCH}/nn/modules/linear.py", 125)
TRAIN = ("main", "/home/me/train.py", 12)
MODULE = ("<module>", "/home/me/train.py", 40)
DISPATCH = ("__torch_dispatch__", f"{OURS}/modules/dispatch.py", 59)
WRAPPED = ("called", "/src/memboard/collector/hooks/wrapping.py", 60)
WALK = ("take", f"{OURS}/history/tensor_walk.py", 9)
STEP = ("step", f"{OURS}/recorder.py", 100)
STARTED = (
    ("_run_script", f"{OURS}/running/program.py", 111),
    ("run", f"{OURS}/running/program.py", 80),
    ("run_plan", f"{OURS}/running/child.py", 38),
    ("<module>", "<string>", 8),
)
COMMAND = (*STARTED[:2], ("start", "/src/tb_plugin/cli/run.py", 96), ("main", "/env/bin/memboard", 8))  # fmt: skip


AROUND = (
    ("__call__", f"{TORCH}/_ops.py", 875),
    DISPATCH,
    ("_fn", f"{TORCH}/_dynamo/eval_frame.py", 1446),
    ("inner", f"{TORCH}/_compile.py", 54),
)
"""Of a dispatch mode, as torch 2.13 calls it."""


def frames_of(stacks, number):
    return [
        (stacks.name[row], stacks.filename[row], int(stacks.line[row]))
        for row in stacks.of(number)
    ]


@pytest.mark.parametrize("started", [STARTED, COMMAND, ()])
def test_a_programs_stacks_are_as_without_memboard(started):
    before = stacks_of(
        [EMPTY, LINEAR, TRAIN, MODULE],
        [EMPTY, DISPATCH, LINEAR, WRAPPED, TRAIN, MODULE, *started],
        [EMPTY, DISPATCH],
        [TRAIN, *started],
        [EMPTY, *AROUND, LINEAR, TRAIN, *started],
        [*AROUND],
        [AROUND[0], *AROUND[2:], TRAIN],
    )
    stacks = without_own(before)
    assert len(stacks) == len(before)
    assert frames_of(stacks, 0) == [EMPTY, LINEAR, TRAIN, MODULE]
    assert frames_of(stacks, 1) == [EMPTY, LINEAR, TRAIN, MODULE]
    assert frames_of(stacks, 2) == [EMPTY], "autograd's thread"
    assert frames_of(stacks, 3) == [TRAIN]
    assert frames_of(stacks, 4) == [EMPTY, LINEAR, TRAIN]
    assert frames_of(stacks, 5) == [], "autograd's thread, without native frames"
    assert frames_of(stacks, 6) == [AROUND[0], *AROUND[2:], TRAIN], "no mode of ours"
    labels = [stack_label(stacks, number) for number in range(4)]
    assert labels == ["train.py:12 main"] * 2 + ["empty", "train.py:12 main"]


def test_what_the_recorder_allocates_is_a_row_of_its_own():
    stacks = without_own(
        stacks_of(
            [EMPTY, WALK, STEP, TRAIN],
            [DISPATCH, WRAPPED],
            [],
            [EMPTY, LINEAR, TRAIN],
            [*STARTED],
        )
    )
    labels = [stack_label(stacks, number) for number in range(len(stacks))]
    assert labels == [RECORDER, *["no stack recorded"] * 2, "train.py:12 main", "no stack recorded"]  # fmt: skip


def test_stacks_without_ours_are_left_as_they_are():
    stacks = stacks_of([EMPTY, LINEAR, TRAIN], [])
    assert without_own(stacks) is stacks


@pytest.mark.parametrize(
    "file",
    [
        "/home/me/collector/train.py",
        "/home/me/collector/modules/attention.py",
        "/home/me/torch/collector/data/modules/dispatch.py",
        "/home/me/collector/modules/dispatch.py",
        "/home/me/memboard/modules/dispatch.py",
        "/home/me/dispatch.py",
        "collector.py",
        "",
        "??",
    ],
)
def test_a_programs_own_files_of_like_names_are_its_own(file):
    assert role_of(file) == ""
    assert program_frames([file]) == [0]


@pytest.mark.parametrize(
    "file",
    [
        r"C:\venv\Lib\site-packages\memboard\collector\modules\dispatch.py",
        "memboard/collector/modules/dispatch.py",  # as kineto shortens it
        "/src/memboard/collector/steps/spans/span.py",
    ],
)
def test_ours_are_known_wherever_they_are_installed(file):
    assert role_of(file) == "passes"
    assert program_frames([file, "train.py", file]) == [1]


def test_random_stacks_keep_what_is_not_ours_in_its_order():
    generator = np.random.default_rng(0)
    pool = [EMPTY, LINEAR, TRAIN, MODULE, DISPATCH, WRAPPED, *STARTED]
    rows = [
        [pool[one] for one in generator.integers(0, len(pool), generator.integers(0, 12))]
        for _ in range(500)
    ]  # fmt: skip
    before = stacks_of(*rows)
    stacks = without_own(before)
    for number, row in enumerate(rows):
        kept = [row[place] for place in program_frames([file for _, file, _ in row])]
        assert frames_of(stacks, number) == kept
