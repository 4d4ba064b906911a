"""Real traces: figures counted straight from the files, and torch-tb-profiler's where it
is right. tests/README.md says which those are."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memboard.collector.format.memory import CATEGORIES
from memboard.collector.torch_profiler.digest.memory_timeline import CATEGORY_OF
from memboard.tb_plugin.analysis.ranks.collectives import rank_collectives
from memboard.tb_plugin.analysis.ranks.distributed import compared
from memboard.tb_plugin.analysis.trace.figures import trace_figures
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.analysis.trace_memory.attribution import memory_holders
from memboard.tb_plugin.formats.traces import read_trace
from memboard.tb_plugin.worker.importer import Importer
from tests.traces_builder import rest_ns

REAL = Path(os.environ.get("MEMBOARD_REAL_DATA", "/nowhere")) / "kineto"
needs_real = pytest.mark.skipif(
    not REAL.is_dir(), reason="MEMBOARD_REAL_DATA is not set: no recorded traces"
)
pytestmark = needs_real

US = 1_000


def expected(folder: str) -> dict[str, Any]:
    return json.loads((REAL / folder / "expected.json").read_text())


def folders() -> list[str]:
    found = [path.parent.relative_to(REAL) for path in REAL.rglob("expected.json")]
    return sorted(str(one) for one in found)


def traces() -> list[tuple[str, str]]:
    return [
        (folder, name)
        for folder in folders()
        for name in expected(folder).get("independent", {})
    ]


def peer_of(folder: str) -> dict[str, dict[str, Any]]:
    """By file of a folder: what the peer says of it."""
    profiles = {
        tuple(key.split("|")): told
        for key, told in expected(folder)["peer_head"]["profiles"].items()
        if not key.startswith("All")
    }
    names = sorted(expected(folder)["independent"])
    return dict(zip(names, (profiles[key] for key in sorted(profiles)), strict=True))


@cache
def importer() -> Importer:
    return Importer()


@cache
def profile_of(folder: str, name: str) -> TraceProfile:
    return TraceProfile(read_trace(REAL / folder / name, importer())())


def same(found: Any, wanted: Any, where: str = "") -> None:
    """Equal, but for what a float of 1e15 microseconds cannot say."""
    if isinstance(wanted, dict):
        for key, value in wanted.items():
            same(found[key], value, f"{where}/{key}")
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), where
        for at, value in enumerate(wanted):
            same(found[at], value, f"{where}/{at}")
    elif isinstance(wanted, float) or isinstance(found, float):
        assert found == pytest.approx(wanted, rel=1e-4, abs=0.51), where
    else:
        assert found == wanted, where


@pytest.mark.parametrize(("folder", "name"), traces())
def test_figures_are_those_counted_from_the_file(folder, name):
    truth = expected(folder)["independent"][name]
    base_ns = truth["baseTimeNanoseconds"] or 0
    figures = trace_figures(profile_of(folder, name), base_ns)
    wanted = {
        key: truth[key]
        for key in ("gpu", "memory_by_device_type_id", "profiler_steps")
        if key in truth
    }
    assert "profiler_steps" in wanted
    same(figures, wanted)
    assert ("gpu" in figures) == ("gpu" in truth)


COSTS = "steps_costs[Kernel,Memcpy,Memset,Communication,Runtime,DataLoader,CpuOp,Other,Total]"
OVERLAP = "comm_overlap[computation,communication,overlap,other]"

RIGHT_OVERLAP = {"tb_sample_resnet50_workers0", "torch213_cpu_transformer"}
"""Without a device the peer takes the calls that wait for a collective for computation."""

RIGHT_PARTS = {
    "tb_sample_resnet50_workers0",
    "torch213_cpu_transformer",
    "torch213_ddp_gloo_2ranks",
    "torch213_fsdp2_gloo_2ranks",
    "hta_amd_rocm62",
}
"""Elsewhere the peer counts NCCL's kernels as computation, or loses kernels and calls."""


@pytest.mark.parametrize("folder", sorted(RIGHT_PARTS - {"torch213_fsdp2_gloo_2ranks"}))
def test_the_parts_of_steps_are_the_peers(folder):
    for name, told in peer_of(folder).items():
        inner, profile = told["internal"], profile_of(folder, name)
        assert [str(n) for n in profile.steps.number] == inner["steps_names"]
        parts = profile.parts
        costs = np.array(inner[COSTS])
        assert parts.parts_ns / US == pytest.approx(costs[:, :-1], abs=0.1)
        assert parts.parts_ns.sum(axis=1) / US == pytest.approx(costs[:, -1], abs=0.1)
        beside = (parts.computation_ns, parts.communication_ns, parts.overlap_ns)
        beside = np.stack((*beside, rest_ns(parts)), axis=1)
        if folder in RIGHT_OVERLAP or profile.devices:
            assert beside / US == pytest.approx(np.array(inner[OVERLAP]), abs=0.1)
        else:
            communication = np.array(inner[OVERLAP])[:, 1]
            assert parts.communication_ns / US == pytest.approx(communication, abs=0.1)


WAITING = ("FSDP::", "c10d::")


@pytest.mark.parametrize(
    "folder", ["torch213_ddp_gloo_2ranks", "torch213_fsdp2_gloo_2ranks"]
)
def test_overlap_without_a_device_is_what_the_innermost_slices_say(folder):
    """Counted from the file: nanosecond by nanosecond which slice is the innermost."""
    for name in expected(folder)["independent"]:
        with gzip.open(REAL / folder / name) as file:
            events = json.load(file)["traceEvents"]
        threads: dict[tuple[int, int], list[tuple[int, int, str]]] = {}
        steps = []
        for one in events:
            if one.get("cat") not in ("cpu_op", "user_annotation"):
                continue
            start = round(one["ts"] * US)
            row = (start, start + round(one["dur"] * US), one["name"])
            if one["name"].startswith("ProfilerStep"):
                steps.append(row)
            else:
                threads.setdefault((one["pid"], one["tid"]), []).append(row)
        first, last = min(steps)[0], max(row[1] for row in steps)
        computes = np.zeros(last - first, bool)
        communicates = np.zeros(last - first, bool)
        for rows in threads.values():
            innermost = np.zeros(last - first, bool)
            own = np.zeros(last - first, bool)
            for start, end, what in sorted(rows, key=lambda row: (row[0], -row[1])):
                inside = slice(max(start - first, 0), max(end - first, 0))
                if what.startswith("gloo:"):
                    own[inside] = True
                else:
                    innermost[inside] = not what.startswith(WAITING)
            # What a collective runs itself (sums of its own) hides nothing of it.
            computes |= innermost & ~own
            communicates |= own
        parts = profile_of(folder, name).parts
        for at, (start, end, _) in enumerate(sorted(steps)):
            step = slice(start - first, end - first)
            both = computes[step] & communicates[step]
            # Neighbouring steps: ours end where the next begins, to the nanosecond.
            assert parts.computation_ns[at] == pytest.approx(
                int(computes[step].sum()), abs=5
            )
            assert parts.overlap_ns[at] == pytest.approx(int(both.sum()), abs=5)
            assert both.sum() < 0.1 * communicates[step].sum()


WITH_KERNELS = (
    "tb_sample_resnet50_workers0",
    "hta_nccl_two_ranks_sampled",
    "hta_ns_resolution_ddp1",
    "hta_simple_add",
    "hta_amd_rocm62",
    "hta_triton",
)


MISSED_CORES = {"hta_simple_add": 16.83, "hta_amd_rocm62": 27.27}
"""Per cent of kernels that the peer does not know to use them: `sm80_xmma_fprop` in TF32,
and Tensile's `MI16x16x1`."""


@pytest.mark.parametrize("folder", WITH_KERNELS)
def test_use_of_the_device_is_the_peers(folder):
    for name, told in peer_of(folder).items():
        (use,) = profile_of(folder, name).devices
        says = {row["title"]: row["value"] for row in told["gpu_summary"]}
        shares = {
            "GPU Utilization": use.utilization,
            "Est. SM Efficiency": use.sm_efficiency,
            "Est. Achieved Occupancy": use.occupancy,
            "Kernel Time using Tensor Cores": use.tensor_core_share,
        }
        assert "GPU Utilization" in says
        for title, share in shares.items():
            if title.endswith("Tensor Cores") and folder in MISSED_CORES:
                assert says[title] == "0.0 %"
                assert share * 100 == pytest.approx(MISSED_CORES[folder], abs=0.01)
            elif title in says and folder == "hta_ns_resolution_ddp1":
                # Times of 1e15 us in floats: the peer's are quarters of microseconds.
                assert share * 100 == pytest.approx(float(says[title][:-2]), abs=0.01)
            elif title in says:
                assert f"{round(share * 100, 2)} %" == says[title], title
            else:
                # No operator of it launched a kernel: then it says no tensor cores.
                assert share is None or title == "Kernel Time using Tensor Cores"


@pytest.mark.parametrize("folder", WITH_KERNELS)
def test_communication_is_what_ran_on_the_device_within_the_steps(folder):
    """By name of the kernel, counted from the file; the peer's is in tests/README.md."""
    for name, truth in expected(folder)["independent"].items():
        profile = profile_of(folder, name)
        parts, gpu = profile.parts, truth["gpu"]
        assert parts.communication_ns.sum() / US == pytest.approx(gpu["nccl_us_union"])
        assert parts.overlap_ns.sum() / US == pytest.approx(gpu["overlap_us"])
        launched = profile.operators.device_self_ns.sum() / US
        # All but what no operator launched; copies and fills are in it too.
        assert launched >= gpu["kernel_us_sum"] * 0.99


EDGES = {
    # By folder: whether steps are marked, and the time of each; the peer fails at most.
    "empty": (False, 0),
    "mem_xpu": (True, 1000),
    "names": (True, 1000),
    "nocat": (True, 1000),
    "strtid": (True, 1000),
    "trunc": (True, 1000),
    "zerodur": (False, 0),  # a step without a length is none
}


@pytest.mark.parametrize("edge", EDGES)
def test_what_the_peer_fails_at_has_its_steps(edge):
    is_marked, took = EDGES[edge]
    found = sorted((REAL / "edge" / edge).glob("*.json"))
    for path in found:
        if path.name == "expected.json":
            continue
        profile = profile_of(f"edge/{edge}", path.name)
        assert profile.steps.are_marked is is_marked
        assert profile.parts.parts_ns.sum() / US == took
        assert len(profile.operators) == len(set(profile.operators.name.tolist()))
    if edge == "mem_xpu":
        devices = {tuple(one) for one in zip(*memory_places(profile), strict=True)}
        assert devices == {(0, -1), (12, 0)}
        assert len(profile.operator_memory("freeing")) >= 2


def memory_places(profile: TraceProfile) -> tuple[list[int], list[int]]:
    memory = profile.trace.memory
    return memory.device_type.tolist(), memory.device.tolist()


RIGHT_OPERATORS = {
    "tb_sample_resnet50_workers0": set(),
    "torch213_ddp_gloo_2ranks": set(),
    "hta_amd_rocm62": set(),
    # The peer drops slices that touch their neighbour's end, and all below them.
    "torch213_cpu_transformer": {
        "aten::fill_",
        "aten::view",
        "aten::reshape",
        "aten::zero_",
        "ViewBackward0",
        "autograd::engine::evaluate_function: ViewBackward0",
        "aten::_reshape_alias",
        "aten::as_strided",
        "aten::new_zeros",
    },
}


@pytest.mark.parametrize("folder", RIGHT_OPERATORS)
def test_operators_are_the_peers(folder):
    for name, told in peer_of(folder).items():
        profile = profile_of(folder, name)
        table, strings = profile.operators, profile.trace.strings
        rows = {strings[int(text)]: at for at, text in enumerate(table.name)}
        listed = told["operation/table?group_by=Operation"]["data"]
        compared = [r for r in listed if r["name"] not in RIGHT_OPERATORS[folder]]
        assert len(compared) > 0.9 * len(listed)
        for row in compared:
            at = rows[row["name"]]
            assert int(table.num_calls[at]) == row["calls"], row["name"]
            for column, key in (
                (table.host_self_ns, "host_self_duration"),
                (table.host_total_ns, "host_total_duration"),
                (table.device_self_ns, "device_self_duration"),
                (table.device_total_ns, "device_total_duration"),
            ):
                assert column[at] / US == pytest.approx(row.get(key, 0), abs=1.01)


def test_operators_with_stacks_are_the_peers():
    seen = 0
    for name, told in peer_of("tb_sample_resnet50_workers0").items():
        profile = profile_of("tb_sample_resnet50_workers0", name)
        table, strings = profile.operators, profile.trace.strings
        known = profile.trace.operators
        written = [bool(strings[row]) for row in known.call_stack.tolist()]
        groups = np.unique(table.group_of[known.row[np.array(written)]])
        ours = {strings[int(table.name[at])] for at in groups.tolist() if at >= 0}
        listed = told["operation/table?group_by=Operation"]["data"]
        assert ours == {row["name"] for row in listed if row["has_call_stack"]}
        seen += len(ours)
    assert seen > 50


@pytest.mark.parametrize("folder", WITH_KERNELS)
def test_kernels_are_the_peers(folder):
    for name, told in peer_of(folder).items():
        profile = profile_of(folder, name)
        table, strings = profile.kernels, profile.trace.strings
        rows = {strings[int(text)]: at for at, text in enumerate(table.name)}
        data = told["kernel/table?group_by=Kernel"]["data"]
        titles = [column["name"] for column in data["columns"]]
        assert len(data["rows"]) == len(table)
        for row in data["rows"]:
            says, at = dict(zip(titles, row, strict=True)), rows[row[0]]
            assert int(table.num_calls[at]) == says["Calls"]
            for column, title in (
                (table.total_ns, "Total Duration (us)"),
                (table.max_ns, "Max Duration (us)"),
                (table.min_ns, "Min Duration (us)"),
            ):
                assert column[at] / US == pytest.approx(says[title], abs=1.01)
            if "Mean Blocks Per SM" in says:
                blocks = float(table.blocks_per_sm[at])
                assert blocks == pytest.approx(says["Mean Blocks Per SM"], abs=0.011)


def test_modules_are_the_peers():
    (told,) = peer_of("torch213_cpu_transformer").values()
    (name,) = peer_of("torch213_cpu_transformer")
    table = profile_of("torch213_cpu_transformer", name).modules
    paths: list[tuple[str, ...]] = []
    for at in range(len(table)):
        parent = int(table.parent[at])
        paths.append((*(paths[parent] if parent >= 0 else ()), table.name[at]))
    rows = {path: at for at, path in enumerate(paths)}
    seen = 0

    def compare(nodes: list[dict[str, Any]], above: tuple[str, ...]) -> None:
        nonlocal seen
        for node in nodes:
            path = (*above, node["name"])
            at = rows[path]
            assert int(table.num_calls[at]) == node["occurences"]
            assert int(table.num_operators[at]) == node["operators"]
            assert table.host_ns[at] / US == pytest.approx(node["host_duration"])
            own = table.host_self_ns[at] / US
            assert own == pytest.approx(node["self_host_duration"], abs=0.1)
            seen += 1
            compare(node["children"], path)

    compare(told["module"]["data"], ())
    assert seen == len(table) == 22


@pytest.mark.parametrize(
    "folder", ["torch213_ddp_gloo_2ranks", "tb_sample_resnet50_workers0"]
)
def test_memory_of_operators_is_the_peers_in_its_own_way(folder):
    kinds = {"CPU": (0, -1), "GPU0": (1, 0)}
    for name, told in peer_of(folder).items():
        profile = profile_of(folder, name)
        table = profile.operator_memory("freeing")
        strings = profile.trace.strings
        rows = {
            (int(kind), int(device), strings[int(text)]): at
            for at, (kind, device, text) in enumerate(
                zip(table.device_type, table.device, table.name, strict=True)
            )
        }
        for device, listed in told["memory"]["rows"].items():
            assert listed
            for row in listed:
                at = rows[(*kinds[device], row[0])]
                found = (
                    table.increase_bytes[at] / 1024,
                    table.self_increase_bytes[at] / 1024,
                    table.num_allocations[at],
                    table.self_num_allocations[at],
                    table.allocated_bytes[at] / 1024,
                    table.self_allocated_bytes[at] / 1024,
                )
                assert found == pytest.approx(row[2:], abs=0.011), row[0]


MLP = [(128, 128)] * 4 + [(128, 10)]
"""Layers of the models that the traces of two ranks are of."""
NUM_PARAMETERS = sum(inputs * outputs + outputs for inputs, outputs in MLP)


def bytes_by_category(folder: str, name: str) -> dict[str, int]:
    lives = profile_of(folder, name).lives
    return {
        category: int(lives.num_bytes[lives.category == at].sum())
        for at, category in enumerate(CATEGORIES)
    }


def test_memory_is_what_the_models_need():
    for name in expected("torch213_ddp_gloo_2ranks")["independent"]:
        found = bytes_by_category("torch213_ddp_gloo_2ranks", name)
        assert found["grad"] == 3 * 4 * NUM_PARAMETERS
        assert found["input"] == 2 * 32 * 128 * 4
        # The last step's input is still there when the trace ends: nobody can tell.
        assert found["other"] == 32 * 128 * 4
    for name in expected("torch213_fsdp2_gloo_2ranks")["independent"]:
        found = bytes_by_category("torch213_fsdp2_gloo_2ranks", name)
        assert found["sharded_grad"] == 3 * 4 * NUM_PARAMETERS // 2
        assert found["unsharded_grad"] == 3 * 4 * NUM_PARAMETERS
        # In forward and again in backward.
        assert found["unsharded_param"] == 2 * 3 * 4 * NUM_PARAMETERS
        assert found["activation"] == 3 * (4 * 32 * 128 * 4 + 4) + 12
        profile = profile_of("torch213_fsdp2_gloo_2ranks", name)
        assert set(profile.lives.modules) == {"0", "1", "2", "3", "4"}


TORCH_CATEGORIES = (
    "parameter",
    "optimizer_state",
    "input",
    "temporary",
    "activation",
    "gradient",
    "autograd_detail",
    "unknown",
)
CREATED = 2


def test_memory_is_for_what_torchs_own_memory_timeline_says():
    """torch sees tensors and their versions; a trace knows places and lives alone."""
    folder = "torch213_export_memory_timeline"
    with gzip.open(REAL / folder / "mt.raw.json.gz") as file:
        timeline = json.load(file)
    profile = profile_of(folder, "mt_trace.json.gz")
    lives, trace = profile.lives, profile.trace
    times = trace.memory.time_ns[lives.event] + trace.base_ns
    ours = {
        (int(times[at]), int(lives.num_bytes[at])): CATEGORIES[int(lives.category[at])]
        for at in np.flatnonzero(lives.born >= 0).tolist()
    }
    pairs = Counter(
        (ours[time_ns, num_bytes], TORCH_CATEGORIES[category])
        for time_ns, action, num_bytes, category in timeline
        if action == CREATED
    )
    assert sum(pairs.values()) == len(ours) == 198
    assert pairs["grad", "gradient"] == 12
    assert pairs["optimizer", "optimizer_state"] == 12
    assert pairs["input", "input"] == 2
    assert pairs["activation", "activation"] == 6
    # The last input is there until the end, as anything else might be.
    assert pairs.pop(("other", "input")) == 1
    for own, theirs in pairs:
        # torch calls activation what depends on a parameter, be it gone at once, and
        # input what depends on none: the optimizer's numbers. Neither outlives its phase.
        # Otherwise the page and a recording's own timeline call it the same.
        assert own in ("temp", CATEGORY_OF.get(theirs.upper()))
        assert (own == "grad") == (theirs == "gradient")
        assert (own == "optimizer") == (theirs == "optimizer_state")


def test_memory_of_the_cpu_transformer_is_known_but_for_nothing():
    (name,) = expected("torch213_cpu_transformer")["independent"]
    profile = profile_of("torch213_cpu_transformer", name)
    lives, memory = profile.lives, profile.trace.memory
    assert bytes_by_category("torch213_cpu_transformer", name)["other"] == 0
    found = memory_holders(
        memory, lives, np.arange(len(memory)), (0, profile.trace.end_ns)
    )
    truth = expected("torch213_cpu_transformer")["independent"][name]
    total = truth["memory_by_device_type_id"]["0:-1"]["peak_total_allocated"]
    assert (found.allocated_bytes, found.seen_bytes) == (total, total)
    assert (found.unseen_bytes, found.unknown_bytes) == (0, 0)
    kinds = {CATEGORIES[at] for at in found.category.tolist()}
    assert kinds == {"activation", "activation_grad", "temp", "input"}
    modules = {lives.modules[at] for at in found.module.tolist() if at >= 0}
    assert {"MultiheadAttention_0", "Linear_4", "LayerNorm_3"} <= modules


@pytest.mark.parametrize(
    "folder", ["torch213_ddp_gloo_2ranks", "torch213_fsdp2_gloo_2ranks"]
)
def test_collectives_of_gloo_are_the_peers(folder):
    told = expected(folder)["peer_head"]["profiles"]["All|1"]["distributed/commops"]
    ranks = {}
    for rank, name in enumerate(sorted(expected(folder)["independent"])):
        profile = profile_of(folder, name)
        assert profile.trace.facts.rank == rank
        ranks[rank] = rank_collectives(profile.trace, profile.roles)
    rows = {(row.rank, row.kind): row for row in compared(ranks).rows}
    seen = 0
    for worker, table in told["data"].items():
        for name, calls, size, _, latency, _, transfer, _ in table["rows"]:
            row = rows[int(worker[-1]), name.removeprefix("gloo:")]
            assert (row.num_calls, row.num_bytes) == (calls, size)
            assert row.total_ns / US == pytest.approx(latency, abs=0.1)
            assert row.transfer_ns / US == pytest.approx(transfer, abs=0.1)
            seen += 1
    assert seen == len(rows)
