"""Categories of a trace's allocations: planted trainings, and what cannot be known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.format.memory import CATEGORIES
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.analysis.trace_memory.attribution import (
    EVIDENCE,
    memory_holders,
)
from tests.tb_plugin.analysis.planted_training import (
    LAYOUTS,
    STEP_NS,
    Planted,
    Training,
    sharded,
    trained,
)
from tests.traces_builder import MadeTrace

EVERYTHING = (-(1 << 60), 1 << 60)


def found_in(made: Training) -> dict[int, Planted]:
    """By address what each allocation is taken for."""
    profile = TraceProfile(made.trace())
    lives, memory = profile.lives, profile.trace.memory

    def name(names, at):
        return "" if at == NOTHING else names[int(at)]

    return {
        int(memory.address[lives.event[at]]): Planted(
            CATEGORIES[int(lives.category[at])],
            name(lives.modules, lives.module[at]),
            name(lives.phases, lives.phase[at]),
        )
        for at in range(len(lives))
    }


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_allocation_of_a_planted_training_is_what_it_is(layout):
    made = trained(layout)
    found = found_in(made)
    wrong = {
        address: (what, found[address])
        for address, what in made.planted.items()
        if found[address] != what
    }
    assert not wrong


def test_units_of_fsdp_are_told_by_their_annotations():
    made = sharded()
    assert found_in(made) == made.planted


def test_an_unknown_life_is_not_guessed():
    made = Training()
    nothing = Planted("other", "", "")
    # In no phase and for good; before the trace; its address taken without a release.
    made.alloc(100, 10, None, nothing)
    made.free(200, 20, 77)
    made.planted[77] = nothing
    lost = made.alloc(300, 30, None, nothing)
    made.events.append((400, made.track("main"), 30, lost))
    profile = TraceProfile(made.trace())
    lives = profile.lives
    assert [CATEGORIES[at] for at in lives.category] == ["other"] * 4
    assert [EVIDENCE[at] for at in lives.evidence] == ["no rule fits"] * 4
    assert lives.is_lost.tolist() == [False, False, True, False]
    assert lives.born.tolist() == [0, NOTHING, 2, 3]
    assert lives.modules == lives.phases == ()


def test_gradients_from_before_the_trace_are_known_by_zero_grad():
    made = Training()
    made.slice("main", "ProfilerStep#1", 0, 1000, "user_annotation")
    made.slice("main", "Optimizer.zero_grad#SGD.zero_grad", 100, 50, "user_annotation")
    made.slice("main", "nn.Module: Net_0", 300, 100, "python_function")
    made.slice("main", "aten::relu", 310, 10)
    made.alloc(315, 8, 390, Planted("activation", "Net_0", "forward"))
    made.free(120, 40, 55)
    made.planted[55] = Planted("grad", "", "")
    lives = TraceProfile(made.trace()).lives
    before = np.flatnonzero(lives.born == NOTHING)
    assert [CATEGORIES[at] for at in lives.category[before]] == ["grad"]


def test_what_a_step_makes_for_its_forward_is_its_input():
    made = Training()
    for step in range(3):
        at = step * 1000
        made.slice("main", f"ProfilerStep#{step}", at, 990, "user_annotation")
        made.slice("main", "aten::randn", at + 10, 20)
        made.slice("main", "nn.Module: Net_0", at + 100, 100, "python_function")
        made.slice("main", "aten::relu", at + 110, 10)
        made.slice("main", "Optimizer.step#SGD.step", at + 300, 9, "user_annotation")
        # Made anew while the last one is still held, as `x = torch.randn(...)` does.
        until = at + 1015 if step < 2 else None
        what = "input" if step < 2 else "other"
        made.alloc(at + 15, 64, until, Planted(what, "", ""))
        made.alloc(at + 16, 32, at + 25, Planted("temp", "", ""))
    assert found_in(made) == made.planted


def test_a_module_that_runs_again_belongs_to_the_backward():
    made = Training()
    made.slice("main", "nn.Module: Net_0", 0, 100, "python_function")
    made.slice("main", "aten::relu", 10, 20)
    evaluate = "autograd::engine::evaluate_function: CheckpointFunctionBackward"
    made.slice("main", evaluate, 200, 200)
    made.slice("main", "nn.Module: Net_0", 210, 100, "python_function")
    made.slice("main", "aten::relu", 220, 20)
    made.alloc(15, 8, 390, Planted("activation", "Net_0", "forward"))
    made.alloc(225, 8, 380, Planted("temp", "Net_0", "backward"))
    assert found_in(made) == made.planted


def test_without_slices_or_addresses_nothing_is_said():
    made = Training()
    trace = made.build()
    assert len(TraceProfile(trace).lives) == 0
    made.alloc(10, 8, 20, Planted("other", "", ""))
    trace = made.trace()
    bare = replace(trace, memory=replace(trace.memory, address=np.zeros(2, np.int64)))
    assert len(TraceProfile(bare).lives) == 0
    lives = TraceProfile(trace).lives
    assert [CATEGORIES[at] for at in lives.category] == ["other"]


def holders_of(made: Training, before_bytes: int | None, window=EVERYTHING):
    profile = TraceProfile(made.trace(before_bytes))
    memory, lives = profile.trace.memory, profile.lives
    found = memory_holders(memory, lives, np.arange(len(memory)), window)
    assert found is not None
    rows = {
        Planted(
            CATEGORIES[int(found.category[at])],
            "" if found.module[at] == NOTHING else lives.modules[int(found.module[at])],
            "" if found.phase[at] == NOTHING else lives.phases[int(found.phase[at])],
        ): (int(found.num_bytes[at]), int(found.num_allocations[at]))
        for at in range(len(found))
    }
    return found, rows


@pytest.mark.parametrize("before", [None, 0, 12_345])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_at_the_peak_the_table_adds_up_to_what_is_there(layout, before):
    made = trained(layout)
    found, rows = holders_of(made, before)
    # Replayed by hand: what is there at the highest moment.
    alive: dict[int, int] = {}
    best, then = -1, {}
    for _, _, num_bytes, address in sorted(made.events):
        if num_bytes > 0:
            alive[address] = num_bytes
        else:
            del alive[address]
        if sum(alive.values()) > best:
            best, then = sum(alive.values()), dict(alive)
    wanted: dict[Planted, tuple[int, int]] = {}
    for address, num_bytes in then.items():
        known = wanted.get(made.planted[address], (0, 0))
        wanted[made.planted[address]] = (known[0] + num_bytes, known[1] + 1)
    assert rows == wanted
    assert found.num_bytes.tolist() == sorted(found.num_bytes.tolist(), reverse=True)
    assert found.seen_bytes == best
    assert found.allocated_bytes == (None if before is None else best + before)
    assert found.unseen_bytes == found.unknown_bytes == (before or 0)


def test_a_range_of_time_has_a_peak_of_its_own():
    made = trained()
    found, rows = holders_of(made, 0, (5_850, 5_940))
    assert found.time_ns == 5_910
    assert rows[Planted("temp", "", "optimizer")] == (60, 1)
    assert Planted("activation", "Linear_0", "forward") not in rows
    profile = TraceProfile(made.trace())
    memory = profile.trace.memory
    later = (3 * STEP_NS, 4 * STEP_NS)
    events = np.arange(len(memory))
    assert memory_holders(memory, profile.lives, events, later) is None


def test_an_empty_trace_has_no_lives():
    assert len(TraceProfile(MadeTrace().build()).lives) == 0


NAMES = (
    "aten::linear",
    "nn.Module: Net_0",
    "[pl][module]a: b",
    "Optimizer.step#A.step",
    "Optimizer.zero_grad#A.zero_grad",
    "autograd::engine::evaluate_function: X0",
    "FSDP::pre_forward (a)",
    "FSDP::post_forward (a)",
    "FSDP::pre_backward (a)",
    "FSDP::post_backward_reduce (a)",
    "FSDP::all_gather",
    "FSDP::all_gather (((",
    "torch/optim/adam.py(1): zero_grad",
    "torch/optim/adam.py(9): step",
    "c10d::x",
    "x.py(3): backward",
    "enumerate(DataLoader)#I.__next__",
    "ProfilerStep#1",
    "",
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("main", "autograd")),
            st.sampled_from(NAMES),
            st.integers(0, 90),
            st.integers(0, 60),
        ),
        max_size=25,
    ),
    st.lists(
        st.tuples(
            st.integers(0, 120),
            st.sampled_from(("main", "autograd", "elsewhere")),
            st.sampled_from((-64, -8, 0, 8, 64)),
            st.integers(1, 4),
        ),
        max_size=25,
    ),
    st.lists(st.tuples(st.integers(0, 24), st.integers(0, 24)), max_size=6),
)
def test_whatever_a_trace_holds_each_allocation_has_one_life(slices, events, arrows):
    made = Training()
    for track, name, start, took in slices:
        made.slice(track, name, start, took)
    for first, second in arrows:
        if max(first, second) < len(slices):
            made.flow("fwdbwd", first, second)
    for time, track, num_bytes, address in events:
        made.events.append((time, made.track(track), num_bytes, address))
    profile = TraceProfile(made.trace(100) if events else made.build())
    lives, memory = profile.lives, profile.trace.memory
    num = int((memory.num_bytes > 0).sum())
    assert int((lives.born != NOTHING).sum()) == num
    assert (np.diff(lives.event) > 0).all()
    assert (lives.gone > lives.born).all()
    assert (lives.module < len(lives.modules)).all()
    assert (lives.phase < len(lives.phases)).all()
    assert (
        (lives.evidence == 0) == (lives.category == CATEGORIES.index("other"))
    ).all()
    if not events:
        return
    found = memory_holders(memory, lives, np.arange(len(memory)), EVERYTHING)
    assert found is not None
    assert found.num_bytes.sum() == found.seen_bytes
    assert found.unseen_bytes <= found.unknown_bytes
    assert found.allocated_bytes == memory.allocated_bytes.max()
