"""Every declared finding, made with one, two and many of what it counts.

`CASES` has a function for each key that a finding may have; `declared` reads the keys from
the sources, so that a new finding without a case is missed by `test_sentences`.
"""

from __future__ import annotations

import ast
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from memboard.tb_plugin.analysis.findings.conditions import Setup
from memboard.tb_plugin.analysis.findings.cycles import (
    CollectedSteps,
    Sawtooth,
    reference_cycles,
)
from memboard.tb_plugin.analysis.findings.growth import GrowingRank, growing_memory
from memboard.tb_plugin.analysis.findings.host_growth import (
    GrowingProcess,
    HostRoom,
    growing_processes,
)
from memboard.tb_plugin.analysis.findings.losses import steps_missing, traces_missing
from memboard.tb_plugin.analysis.findings.ranks import (
    Peaks,
    peak_findings,
)
from memboard.tb_plugin.analysis.findings.steps import (
    growing,
    slow_every,
    waiting_for_data,
)
from memboard.tb_plugin.analysis.findings.stragglers import straggling, waited_for
from memboard.tb_plugin.analysis.findings.trace.devices import idle
from memboard.tb_plugin.analysis.findings.trace.efficiency import slow_matmuls
from memboard.tb_plugin.analysis.findings.trace.rules import trace_findings
from memboard.tb_plugin.analysis.oom.case import (
    Case,
    Cause,
    Elsewhere,
    FreeBlocks,
    Growth,
    OomFacts,
    PendingFrees,
)
from memboard.tb_plugin.analysis.oom.holders import Holding
from memboard.tb_plugin.analysis.oom.judge import ended_finding, oom_finding
from memboard.tb_plugin.analysis.ranks.stragglers import StepTimes, Straggler
from memboard.tb_plugin.analysis.ranks.waiting import WaitingCost
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.analysis.trace.trace import TraceFacts
from memboard.tb_plugin.api.findings import Finding
from memboard.tb_plugin.api.overview import LostSteps, LostTrace, RankLoss
from tests.builders import RunBuilder
from tests.tb_plugin.analysis.planted_operators import multiplying
from tests.tb_plugin.client import Page
from tests.tb_plugin.step_runs import MS, PARTS, Story
from tests.traces_builder import MadeTrace, memory_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

GIB = 1 << 30
SOURCES = Path(__file__).parents[2] / "tb_plugin"
ENDS = ("exception", "lost", "signal")
KEY_ARGUMENT = {
    ("trace", "devices.py", "trace_finding"): 1,
    ("trace", "efficiency.py", "trace_finding"): 1,
    ("trace", "waiting.py", "trace_finding"): 1,
    ("findings", "losses.py", "_finding"): 0,
}
"""Of functions that make findings, by file: which argument the key is."""


def declared() -> set[str]:
    """Keys of all findings, by the calls in the sources that make them."""
    keys = {*get_args(Cause), "ended", *(f"ended_{how}" for how in ENDS)}
    for path in SOURCES.rglob("*.py"):
        tree = ast.parse(path.read_text())
        constants = {
            target.id: node.value
            for node in ast.walk(tree)
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None
            for target in (
                node.targets if isinstance(node, ast.Assign) else [node.target]
            )
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", "")
            index = KEY_ARGUMENT.get((*path.parts[-2:], name))
            if index is not None:
                keys |= _texts(node.args[index], constants)
            elif name == "Finding":
                given = {one.arg: one.value for one in node.keywords}
                if "key" in given:
                    keys |= _texts(given["key"], constants)
    return keys


def _texts(node: ast.expr, constants: dict[str, ast.expr]) -> set[str]:
    if isinstance(node, ast.Constant):
        return {node.value}
    if isinstance(node, ast.Name):
        return _texts(constants[node.id], constants) if node.id in constants else set()
    if isinstance(node, ast.IfExp):
        return _texts(node.body, constants) | _texts(node.orelse, constants)
    return set()  # of ends and verdicts, which `declared` begins with


# Ranks


def peaks(num: int, num_ooms: int, num_unread: int, num_outliers: int) -> Peaks:
    sizes = np.arange(num, dtype=np.float64) * GIB + 10 * GIB
    return Peaks(
        ranks=range(num),
        peak_bytes=sizes,
        peak_step=np.full(num, 3.0),
        capacity_bytes=np.full(num, 80.0 * GIB),
        capacity_kind="device",
        median_bytes=float(np.median(sizes)),
        growth=np.zeros(num),
        num_ooms=(np.arange(num) < num_ooms).astype(np.float64),
        outliers=range(num - num_outliers, num),
        unreadable={},
        empty=(),
        num_unread=num_unread,
    )


def of_peaks(num: int) -> Iterator[Finding]:
    for part in sorted({1, num}):
        for unread, ooms, outliers in ((part, 0, 0), (0, part, 0), (0, 0, part)):
            facts = peaks(num, ooms, unread, outliers)
            yield from peak_findings(facts, None, has_errors=False)
        facts = peaks(max(num, 3), 0, 0, 0)
        reasons = dict.fromkeys(range(part), "The file is cut.")
        yield from peak_findings(
            replace(facts, unreadable=reasons), None, has_errors=False
        )
        reasons[0] = ""
        yield from peak_findings(
            replace(facts, unreadable=reasons), None, has_errors=False
        )
        empty = replace(facts, empty=range(part))
        yield from peak_findings(empty, None, has_errors=False)
    yield from peak_findings(peaks(num, 0, 0, 0), 0, has_errors=False)


def late(rank: int, *, by_part: bool) -> Straggler:
    return Straggler(rank, 0.9, 0.4, "backward", 0.4, stands_out=True, by_part=by_part)


def stragglers(num: int) -> Iterator[Finding | None]:
    for part in {1, num}:
        ranks = range(part)
        hosts = dict.fromkeys(ranks, "node3")
        for by_part in (True, False):
            rows = [late(rank, by_part=by_part) for rank in ranks]
            yield straggling(rows, hosts, 1.0, max(num, 4 * part))
    yield straggling([late(0, by_part=True)], {}, 1.0, 2)


def late_ranks(num: int) -> Iterator[Finding | None]:
    for part in ("dataloader", "computation", "other", ""):
        costs = [
            WaitingCost(
                rank=rank,
                cost_ns=3e7 if rank < num else -1e7,
                step_ns=1e8,
                stands_out=rank < num,
                collective=("0" if part else "", "all_reduce"),
                part=part,
                part_excess_ns=2e7 if part else 0.0,
            )
            for rank in range(max(2, 4 * num))
        ]
        yield waited_for(costs)


def growing_ranks(num: int) -> Iterator[Finding | None]:
    ranks = [
        GrowingRank(rank, 2.0**20, 2.0**30, num, num, 2.0**35, 2.0**36)
        for rank in range(num)
    ]
    for on_gpu in (None, True):
        yield growing_memory(ranks, None, Setup(on_gpu=on_gpu, records_history=False))


def growing_hosts(num: int) -> Iterator[Finding | None]:
    room = HostRoom("node3", 2.0**30, None, 2.0**25, num)
    for workers in (True, False):
        processes = [
            GrowingProcess(rank, 2.0**20, 2.0**30, num, num, 2.0**35, room)
            for rank in range(num)
        ]
        yield growing_processes(processes, workers=workers)


def teeth(num: int, size: float = 2.0**30) -> Sawtooth:
    return Sawtooth(num, num, size, size, 1.0, num, is_called=num > 1, rise=size)


def cycles(num: int) -> Iterator[Finding]:
    yield reference_cycles(3, teeth(num), memory="device memory", capacity=None)
    yield reference_cycles(3, teeth(num), memory="host memory", capacity=None)


def loss(rank: int, num: int, *, is_stopped: bool) -> RankLoss:
    return RankLoss(
        rank=rank,
        attempt=0,
        num_steps=num,
        num_dropped=0 if is_stopped else num,
        num_unwritten=0,
        num_damaged=0 if is_stopped else 1,
        damaged=() if is_stopped else (LostSteps("train", 1, 1, 1),),
        num_summed_up=0,
        is_stopped=is_stopped,
        cut_seconds=2.0 if is_stopped else 0.0,
        cut_steps=float(num) if is_stopped else None,
        num_traces=num,
        num_lost_traces=num,
        lost_traces=tuple(
            LostTrace(cycle, None if is_stopped else cycle, cycle + num - 1, "full.")
            for cycle in range(1, num + 1)
        ),
    )


def losses(num: int) -> Iterator[Finding | None]:
    lost = [loss(rank, num, is_stopped=False) for rank in range(num)]
    yield steps_missing(lost)
    yield traces_missing(lost)


# Steps


def times_of(story: Story) -> StepTimes:
    told = story.tell()
    seconds = np.array(told.total) * MS
    parts = {name: np.array(told.parts[name], float) * MS for name in PARTS}
    return StepTimes(range(len(seconds)), seconds, parts, seconds)


def waiting(num: int) -> Iterator[Finding | None]:
    times = times_of(Story(num, 60, more=lambda r, s: {"dataloader": 60}))
    for num_workers in (None, 0, num):
        yield waiting_for_data(times, 0.17, lambda _, num=num_workers: num)


def slow_steps(num: int) -> Iterator[Finding | None]:
    every, steps = num + 1, np.arange(60 * (num + 1))
    is_slow = steps % every == num
    seconds = np.where(is_slow, 1.0, 0.1)
    parts = {"forward": np.full(len(steps), 0.05), "eval": np.where(is_slow, 0.8, 0.0)}
    for frees in (True, False):
        collected = CollectedSteps(is_slow.astype(np.float64), frees_cycles=frees)
        for of in ({}, {"forward": parts["forward"]}, parts):
            yield slow_every(steps, seconds, of, 0, collected)
            yield slow_every(steps, seconds, of, 0)


def growing_steps(num: int) -> Iterator[Finding | None]:
    times = times_of(Story(num, 120, more=lambda r, s: {"forward": s * 0.5}))
    yield growing(np.arange(120) * num, times)


# Traces

H100 = {"id": 0, "computeMajor": 9, "computeMinor": 0, "totalGlobalMem": 1000}


def traced(
    num: int, *names: str, takes: int = 4_000, kernel: str = "sgemm"
) -> MadeTrace:
    """One step with so many kernels on each of so many devices, launched by operators."""
    made = MadeTrace()
    made.slice("main", "ProfilerStep#1", 0, 2_000_000, "user_annotation")
    for place, name in enumerate(names):
        made.slice("main", name, 2000 * place, 1900, "user_annotation")
    made.slice("main", "aten::mm", 90_000, 1_800_000)
    for at in range(num):
        for device in range(num if num < 4 else 2):
            start = 100_000 + at * 20_000
            made.kernel(start, start, takes, kernel, device=device)
    return made


def of_trace(num: int) -> Iterator[Finding]:
    made = [
        traced(num, "DataParallel.forward"),
        traced(num, "DistributedDataParallel.forward", "Optimizer.step#SGD.step"),
    ]
    talks = MadeTrace()
    talks.slice("main", "ProfilerStep#1", 0, 2_000_000, "user_annotation")
    for device in range(num if num < 4 else 2):
        talks.kernel(0, 400_000, 900_000, "ncclDevKernel_AllReduce", device=device)
    for place in range(num):
        talks.kernel(0, 1_400_000, 100_000, f"ring_reduce_{place}", device=0)
    made.append(talks)
    loader = traced(num)
    loader.slice(
        "data", "enumerate(DataLoader)#It.__next__", 0, 900_000, "user_annotation"
    )
    made.append(loader)
    for one in made:
        backend = "gloo" if one is made[1] else ""
        trace = one.build(facts=TraceFacts(devices=(H100,) * num, backend=backend))
        memory = memory_events([(1, 5, 0, 0, -1, 10, 0), (2, 5, 0, 1, 0, 990, 0)])
        profile = TraceProfile(replace(trace, memory=memory))
        yield from trace_findings(profile)
        yield from idle(profile)  # left out where waiting for the host says it all
    busy = traced(1, takes=1_800_000)
    trace = busy.build(facts=TraceFacts(devices=(H100,)))
    work = trace.device_work
    work = replace(work, blocks_per_sm=np.full(len(work.row), 0.1))
    yield from trace_findings(TraceProfile(replace(trace, device_work=work)))
    yield from slow_matmuls(multiplying(rows=num, takes_us=400))


# Whole runs


def answered(write: Callable[[RunBuilder], Any]) -> list[Finding]:
    import msgspec

    with tempfile.TemporaryDirectory() as folder:
        write(RunBuilder(Path(folder)))
        found = Page(Path(folder)).of_run("/findings")["findings"]
    return [msgspec.convert(one, Finding) for one in found]


def ended_ranks(num: int) -> Iterator[Finding]:
    for how, message in (
        ("exception", "ValueError: boom"),
        ("exception", "KeyboardInterrupt"),
        ("signal", "SIGTERM"),
        ("lost", ""),
    ):

        def write(run: RunBuilder, how: str = how, message: str = message) -> None:
            for number in range(num):
                rank = run.rank(number, world_size=num, memory_limit_bytes=2 * GIB)
                rank.steps(range(num), rss_bytes=[300 << 20] * num)
                if how != "lost":
                    rank.close(how, message)

        yield from answered(write)


def simulations(num: int) -> Iterator[Finding]:
    def write(run: RunBuilder) -> None:
        for number in range(num):
            run.rank(number, world_size=num + 1, simulated=True).steps([0, 1])

    def beginning(run: RunBuilder) -> None:
        run.rank(0, world_size=num + 1, simulated=True).steps([0, 1])

    yield from answered(write)
    yield from answered(beginning)


def overloads(num: int) -> Iterator[Finding]:
    steps = np.arange(40)

    def write(run: RunBuilder) -> None:
        for number in range(num):
            rank = run.rank(number, world_size=num, host=f"node{number}")
            rank.steps(steps, step_time_seconds=np.full(40, 0.1))
            load = {"cpu_runnable_pct": np.full(40, 200.0 + number)}
            rank.rows("cpu", steps, cpu_steal_pct=np.full(40, 12.0), **load)
            rank.close()

    yield from answered(write)


# Errors

FULL: dict[str, Any] = {
    "requested_bytes": GIB,
    "device_free_bytes": 0,
    "capacity_bytes": 80 * GIB,
    "reserved_bytes": 79 * GIB,
    "active_bytes": 79 * GIB,
}


def errors(num: int) -> dict[str, OomFacts]:
    """By cause: facts that lead to it."""
    half = {**FULL, "active_bytes": 40 * GIB}
    blocks = FreeBlocks(30 * GIB, GIB // 2, num)
    streams = tuple((f"stream {at:#x}", GIB) for at in range(min(num, 3)))
    pending = PendingFrees(30 * GIB, num, streams, ("loader.py:7 fetch",))
    pools = {"private_free_bytes": 30 * GIB, "num_private_pools": num}
    others = {"peers_peak_bytes": (20 * GIB,) * num}
    lone = {**FULL, "reserved_bytes": 30 * GIB, "active_bytes": 30 * GIB}
    limited = {**lone, "device_free_bytes": 49 * GIB, "limit_bytes": 30 * GIB}
    return {
        "really_full": OomFacts(**FULL),
        "fragmented": OomFacts(**half, free=blocks),
        "growth": OomFacts(**FULL, growth=Growth(60 * GIB, GIB, num, "series")),
        "uncollected_cycles": OomFacts(**FULL, cycles=teeth(num, 30.0 * GIB)),
        "single_giant": OomFacts(**{**lone, "requested_bytes": 90 * GIB}),
        "imbalance": OomFacts(**FULL, **others),
        "non_torch": OomFacts(**lone),
        "fitting_block_free": OomFacts(**FULL, elsewhere=Elsewhere(30 * GIB, "stream")),
        "private_pools": OomFacts(**half, **pools, free=FreeBlocks(0, 0, 0)),
        "pending_free": OomFacts(**{**FULL, "pending": pending}),
        "process_limit": OomFacts(**limited),
        "unsure": OomFacts(requested_bytes=GIB),
    }


def verdicts(num: int) -> Iterator[Finding]:
    captured = Holding("graph_pools", 30 * GIB, num + 3, free_bytes=GIB)
    facts = [
        *errors(num).values(),
        replace(errors(num)["private_pools"], captured=captured),
    ]
    facts.append(
        replace(errors(num)["growth"], growth=Growth(60 * GIB, GIB, num, "stacks"))
    )
    facts.append(replace(facts[0], cycles=teeth(num)))
    for number, oom_facts in enumerate(facts):
        case = Case(facts=oom_facts, world_size=num + 1, trains=True)
        yield oom_finding(f"{number}", case, num_earlier=num, num_later=20 * num)
    ended = Case(facts=OomFacts(**FULL), is_out_of_memory=False)
    for by_signal in (False, True):
        yield ended_finding("ended", ended, by_signal=by_signal, message="boom")


CASES: dict[str, Callable[[int], Iterable[Finding | None]]] = {
    **dict.fromkeys(
        ("reading", "unreadable", "empty", "ran_out", "uneven_peaks", "peak"), of_peaks
    ),
    "straggler": stragglers,
    "late_rank": late_ranks,
    "growing_memory": growing_ranks,
    **dict.fromkeys(("growing_host", "growing_workers"), growing_hosts),
    "reference_cycles": cycles,
    **dict.fromkeys(("steps_missing", "traces_missing"), losses),
    "dataloader_bound": waiting,
    "slow_every_n": slow_steps,
    "growing": growing_steps,
    **dict.fromkeys(
        (
            "loading",
            "communicating",
            "may_communicate",
            "no_nccl",
            "single_process",
            "near_capacity",
        ),
        of_trace,
    ),
    **dict.fromkeys(
        (
            "host_bound",
            "small_kernels",
            "idle",
            "empty_device",
            "no_tensor_cores",
            "slow_matmuls",
        ),
        of_trace,
    ),
    **dict.fromkeys((f"ended_{how}" for how in ENDS), ended_ranks),
    "simulating": simulations,
    "overloaded": overloads,
    **dict.fromkeys((*get_args(Cause), "ended"), verdicts),
}
"""By key: what makes findings of it, among others."""
