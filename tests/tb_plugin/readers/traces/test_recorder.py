"""The recorder's slices of a trace: the program's operators are as without them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.format.own.frames import DISPATCH_MODE, RECORDER
from memboard.collector.format.own.slices import METADATA_KEY, TRACKS_MODULES
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.formats.traces.columns import assembling
from tests.tb_plugin.readers.traces.reading import document, event, read

TRACKED = {METADATA_KEY: {TRACKS_MODULES: True}}
OURS = "/opt/venv/lib/python3.11/site-packages/memboard/collector"
DISPATCH = f"{OURS}/modules/dispatch.py(50): __torch_dispatch__"
INNER = "/opt/venv/torch/_compile.py(42): inner"


class Program:
    """Writes a program's operators, as torch does below our mode where it is on."""

    def __init__(self, *, mode: str = "") -> None:
        self.mode = mode
        self.events: list[dict] = []
        self.now = 0
        self.recorder_us = 0

    def spend(self, us: int, *, recorder: bool = False) -> None:
        self.now += us
        if recorder:
            self.recorder_us += us

    def slice(self, name: str, run, category: str = "cpu_op", **args) -> None:
        made = event(name, self.now, cat=category, args=args)
        self.events.append(made)
        run()
        made["dur"] = self.now - made["ts"]

    def python(self, name: str, run) -> None:
        self.slice(name, run, "python_function")

    def operator(self, name: str, before: int, inner, after: int) -> None:
        """`inner`: of (name, before, inner, after)."""

        def kernel() -> None:
            for child in inner:
                self.operator(*child)
            self.spend(after)

        def call() -> None:
            self.spend(before)
            if self.mode:
                self.slice(DISPATCH_MODE, lambda: self._through_mode(name, kernel))
            else:
                kernel()

        self.slice(name, call)

    def _through_mode(self, name: str, kernel) -> None:
        mode, self.mode = self.mode, ""  # it is off while it works

        def repeated() -> None:
            self.slice(name, kernel)

        self.spend(3, recorder=True)
        if mode == "python":
            self.python(INNER, lambda: self.python(DISPATCH, repeated))
        else:
            repeated()
        self.spend(2, recorder=True)
        self.mode = mode

    def profile(self, **top) -> TraceProfile:
        return TraceProfile(read(document(self.events, **top)))


def rows(profile: TraceProfile) -> dict[str, tuple[int, int, int]]:
    """Calls, self and total time in us, by name."""
    table = profile.operators
    columns = (table.name, table.num_calls, table.host_self_ns, table.host_total_ns)
    return {
        profile.operator_names[name]: (num, own // 1000, total // 1000)
        for name, num, own, total in zip(*map(list, columns), strict=True)
    }


def names_of(profile: TraceProfile) -> Counter[str]:
    trace = profile.trace
    return Counter(trace.name_of(row) for row in range(len(trace.slices)))


NAMES = st.sampled_from(["aten::addmm", "aten::mm", "aten::copy_", "mm"])
SPENT = st.integers(1, 9)
OPERATORS = st.recursive(
    st.tuples(NAMES, SPENT, st.just([]), SPENT),
    lambda inner: st.tuples(NAMES, SPENT, st.lists(inner, max_size=3), SPENT),
    max_leaves=8,
)


@pytest.mark.parametrize(("mode", "top"), [("silent", TRACKED), ("python", {})])
@given(programs=st.lists(OPERATORS, min_size=1, max_size=4))
def test_operators_are_as_without_the_recorder_and_it_has_one_row(mode, top, programs):
    plain, tracked = Program(), Program(mode=mode)
    for program in programs:
        plain.operator(*program)
        tracked.operator(*program)
    expected, found = rows(plain.profile()), rows(tracked.profile(**top))
    assert found.pop(RECORDER)[1:] == (tracked.recorder_us, tracked.recorder_us)
    assert found == expected
    names = names_of(tracked.profile(**top))
    assert not {DISPATCH_MODE, DISPATCH, INNER} & set(names)


def test_what_nobody_proves_to_be_ours_stays_and_says_so():
    program = Program(mode="silent")
    program.operator("aten::mm", 1, [], 5)
    profile = program.profile()
    assert names_of(profile) == {"aten::mm": 2, DISPATCH_MODE: 1}
    text = f"{DISPATCH_MODE} (of MemBoard's modules, or of the program)"
    assert text in rows(profile)


def test_a_mode_of_the_programs_stays_where_ours_is_inside_it():
    program = Program(mode="silent")

    def other_mode() -> None:
        program.spend(7)
        program.operator("aten::mm", 1, [], 5)

    program.slice("aten::mm", lambda: program.slice(DISPATCH_MODE, other_mode))
    profile = program.profile(**TRACKED)
    assert rows(profile)[DISPATCH_MODE] == (1, 7, 13)
    assert rows(profile)[RECORDER][1:] == (5, 5)
    assert rows(profile)["aten::mm"][0] == 2


def test_a_kernel_belongs_to_the_programs_call():
    launch = {"correlation": 7, "External id": 3}
    events = [
        event("aten::mm", 0, 100, args={"External id": 1}),
        event(DISPATCH_MODE, 10, 80, args={"External id": 2}),
        event("aten::mm", 30, 40, args={"External id": 3}),
        event("cudaLaunchKernel", 40, 5, cat="cuda_runtime", args=launch),
        {
            **event("gemm", 200, 50, cat="kernel", pid=0, tid=7),
            "args": {**launch, "device": 0, "stream": 7},
        },
        {
            **event("by id", 300, 20, cat="kernel", pid=0, tid=7),
            "args": {"External id": 3, "device": 0, "stream": 7, "correlation": 9},
        },
    ]
    profile = TraceProfile(read(document(events, **TRACKED)))
    table = profile.operators
    by_name = {
        profile.operator_names[name]: (int(device), int(calls))
        for name, device, calls in zip(
            table.name, table.device_self_ns, table.num_calls, strict=True
        )
    }
    assert by_name["aten::mm"] == (70_000, 1)
    assert by_name[RECORDER][0] == 0


def test_frames_of_the_recorder_are_one_name_and_those_around_the_program_are_none():
    program = Program()
    wrapped = f"{OURS}/hooks/wrapping.py(60): called"
    works = f"{OURS}/recorder.py(114): step"

    def step() -> None:
        program.spend(5)
        program.python("torch/_tensor.py(3): numel", lambda: program.spend(4))
        program.operator("aten::clone", 1, [], 2)

    def train() -> None:
        program.python(works, step)
        program.python(wrapped, called)
        program.spend(1)

    def called() -> None:
        program.spend(2)
        program.python("train.py(7): forward", lambda: program.spend(10))
        program.python("<built-in function len>", lambda: program.spend(1))

    def run() -> None:
        program.spend(1)
        program.python("train.py(1): <module>", train)

    child = f"{OURS}/running/child.py(38): run_plan"
    started = f"{OURS}/running/program.py(111): _run_script"
    program.python(child, lambda: program.python(started, run))
    profile = program.profile()
    assert names_of(profile) == {
        RECORDER: 3,
        "train.py(1): <module>": 1,
        "train.py(7): forward": 1,
    }
    assert rows(profile) == {RECORDER: (3, 15, 15)}


def test_threads_of_the_recorder_are_not_its_cost():
    program = Program()
    waits = f"{OURS}/writing/writer.py(307): _run"
    program.python(
        "threading.py(1002): _bootstrap",
        lambda: program.python(
            "threading.py(982): run",
            lambda: program.python(waits, lambda: program.spend(900)),
        ),
    )
    program.python(
        "threading.py(1002): _bootstrap",
        lambda: program.python("train.py(3): load", lambda: program.spend(9)),
    )
    assert names_of(program.profile()) == {
        "threading.py(1002): _bootstrap": 1,
        "train.py(3): load": 1,
    }


def test_a_programs_own_folder_of_that_name_is_its_own():
    program = Program()
    program.python("memboard/gather.py(3): step", lambda: program.spend(9))
    assert names_of(program.profile()) == {"memboard/gather.py(3): step": 1}


def test_it_is_folded_beside_levels_that_are_not_shown(monkeypatch):
    monkeypatch.setattr(assembling, "MAX_LEVELS", 50)
    program = Program(mode="silent")
    program.operator("aten::mm", 1, [], 2)
    later = program.now + 10
    program.events += [event("call", later + at, 200 - 2 * at) for at in range(60)]
    found = names_of(program.profile(**TRACKED))
    assert found == {"aten::mm": 1, RECORDER: 2, "call": 50}
