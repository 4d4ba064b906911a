"""Operators of backward and the forward ones they undo, by arrows and by numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from memboard.tb_plugin.analysis.operators.module_times import arrows, backward_links
from memboard.tb_plugin.analysis.trace.build import no_rows
from memboard.tb_plugin.analysis.trace.trace import Flows
from tests.tb_plugin.analysis.test_profile_conformance import (
    needs_real,
    profile_of,
    traces,
)
from tests.traces_builder import MadeTrace, operator_details


class Numbered:
    """Operators with sequence numbers; `links` by their names."""

    def __init__(self) -> None:
        self.made = MadeTrace()
        self._of: list[tuple[int, int, int]] = []

    def forward(self, name: str, start: int, took: int, number: int, on="main") -> int:
        row = self.made.slice(on, name, start, took)
        self._of.append((row, number, 0))
        return row

    def backward(self, name: str, start: int, took: int, number: int, of=1) -> int:
        row = self.made.slice("autograd", name, start, took)
        self._of.append((row, number, of))
        return row

    def build(self) -> Any:
        trace = self.made.build()
        found = sorted((int(self.made.rows[row]), *rest) for row, *rest in self._of)
        row, number, thread = np.array(found, np.int64).reshape(-1, 3).T
        operators = operator_details(row, sequence=number, forward_thread=thread)
        return replace(trace, operators=operators)

    def links(self) -> tuple[dict[str, str], str]:
        trace = self.build()
        found = backward_links(trace)

        def name(row: int) -> str:
            return trace.strings[int(trace.slices.name[row])]

        pairs = zip(found.backward.tolist(), found.forward.tolist(), strict=True)
        return {name(to): name(origin) for to, origin in pairs}, found.linked_by


def test_of_operators_with_one_number_the_last_to_begin_made_the_node():
    made = Numbered()
    made.forward("aten::linear", 10, 50, 7)
    made.forward("aten::t", 12, 3, 7)
    made.forward("aten::addmm", 20, 30, 7)
    made.forward("aten::relu", 70, 10, 8)
    made.backward("autograd::engine::evaluate_function: ReluBackward0", 100, 9, 8)
    made.backward("autograd::engine::evaluate_function: AddmmBackward0", 110, 40, 7)
    made.backward("AddmmBackward0", 115, 30, 7)
    # A node that was made before the profiler began, and a number nobody has.
    made.backward("MulBackward0", 160, 5, 3)
    made.backward("AccumulateGrad", 170, 5, -1)
    assert made.links() == (
        {
            "autograd::engine::evaluate_function: ReluBackward0": "aten::relu",
            "autograd::engine::evaluate_function: AddmmBackward0": "aten::addmm",
            "AddmmBackward0": "aten::addmm",
        },
        "sequence_numbers",
    )


def test_of_two_that_begin_at_once_the_inner_one_did():
    made = Numbered()
    made.forward("aten::matmul", 10, 50, 7)
    made.forward("aten::mm", 10, 30, 7)
    made.backward("MmBackward0", 100, 9, 7)
    assert made.links()[0] == {"MmBackward0": "aten::mm"}


def test_a_number_of_several_threads_names_none_of_them():
    made = Numbered()
    made.forward("aten::mm", 10, 5, 7)
    made.forward("aten::mul", 10, 5, 7, on="replica")
    made.forward("aten::relu", 20, 5, 8)
    made.backward("MmBackward0", 100, 9, 7)
    made.backward("ReluBackward0", 120, 9, 8)
    assert made.links()[0] == {"ReluBackward0": "aten::relu"}


def test_backward_undoes_nothing_that_comes_later():
    made = Numbered()
    made.backward("MmBackward0", 5, 9, 7)
    made.forward("aten::mm", 50, 5, 7)
    assert made.links() == ({}, "not_linked")


def test_arrows_are_believed_before_numbers():
    made = Numbered()
    first = made.forward("aten::mm", 10, 5, 7)
    made.forward("aten::relu", 20, 5, 8)
    undone = made.backward("MmBackward0", 100, 9, 8)
    made.made.flow("fwdbwd", first, undone)
    assert made.links() == ({"MmBackward0": "aten::mm"}, "arrows")


def test_the_engines_call_around_an_arrow_has_its_number():
    made = Numbered()
    first = made.forward("aten::mm", 10, 5, 7)
    made.backward("autograd::engine::evaluate_function: MmBackward0", 90, 30, 7)
    undone = made.backward("MmBackward0", 100, 9, 7)
    made.made.flow("fwdbwd", first, undone)
    found, linked_by = made.links()
    assert (len(found), set(found.values()), linked_by) == (2, {"aten::mm"}, "arrows")


@pytest.mark.parametrize(
    ("name", "linked_by"),
    [
        ("AddmmBackward0", "not_linked"),
        ("autograd::engine::evaluate_function: X", "not_linked"),
        ("aten::mm", "not_run"),
        ("Backward.md(3): main", "not_run"),
    ],
)
def test_why_nothing_is_known(name, linked_by):
    made = MadeTrace()
    made.slice("main", name, 0, 10)
    found = backward_links(made.build())
    assert (len(found.backward), found.linked_by) == (0, linked_by)


@needs_real
@pytest.mark.parametrize(
    ("folder", "name"),
    [
        (folder, name)
        for folder, name in traces()
        if folder.startswith("torch213_")
        or folder in ("hta_ns_resolution_ddp1", "hta_amd_rocm62")
    ],
)
def test_numbers_give_what_the_profilers_own_arrows_say(folder, name):
    trace = profile_of(folder, name).trace
    by_arrows = backward_links(trace)
    by_numbers = backward_links(replace(trace, flows=no_rows(Flows)))
    assert (by_arrows.linked_by, by_numbers.linked_by) == (
        "arrows",
        "sequence_numbers",
    )
    # Of what has arrows nothing else is said by numbers, nor is any of it missing there.
    assert by_numbers.backward.tolist() == by_arrows.backward.tolist()
    assert by_numbers.forward.tolist() == by_arrows.forward.tolist()
    backward, forward = arrows(trace)
    found = by_numbers.forward[np.searchsorted(by_numbers.backward, backward)]
    assert found.tolist() == forward.tolist()
