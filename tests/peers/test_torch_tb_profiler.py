"""The real torch-tb-profiler 0.4.3 beside MemBoard's routes, on the same traces.

Where it is right the figures are equal; where it is not, a test says what it answers and
what the file holds.
"""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from tests.peers.old_plugin_figures import MS, Beside
from tests.peers.old_plugin_traces import WAITS_US, all_but, these
from tests.peers.running import needs_peers
from tests.tb_plugin.pages.profiled import ask, columns_of

pytestmark = needs_peers

RESNET = "tb_sample_resnet50_workers0"
NCCL = "hta_nccl_two_ranks_sampled"
DDP, FSDP2 = "torch213_ddp_gloo_2ranks", "torch213_fsdp2_gloo_2ranks"
B200, MI300 = (
    "tracelens_b200_eager_trace",
    "tracelens_mi300_gaunernst_bert-small-uncased__1016001",
)
OF_ASCEND = "ascend_msprof_trace_view"


@pytest.fixture(scope="session")
def beside(tmp_path_factory) -> Beside:
    return Beside(tmp_path_factory.mktemp("old_plugin") / "logdir")


def assert_same(here: dict[Any, dict[str, float]], there: dict[Any, dict[str, float]]):
    """Rows and their numbers: equal, but that torch-tb-profiler rounds some."""
    assert here.keys() == there.keys()
    for name, row in there.items():
        assert here[name] == pytest.approx(row, abs=0.51, rel=1e-6), name


def without(
    rows: dict[str, dict[str, float]], *keys: str
) -> dict[str, dict[str, float]]:
    return {
        name: {key: value for key, value in row.items() if key not in keys}
        for name, row in rows.items()
    }


# Runs


@all_but(OF_ASCEND)
def test_each_file_is_a_trace_of_the_same_run(beside, folder):
    keys = [key for key in beside.told(folder) if not key.startswith(("All.", "views"))]
    assert len(beside.pairs(folder)) == len(keys) >= 1


@these(OF_ASCEND)
def test_a_trace_that_is_a_list_opens_here_alone(beside, folder):
    assert beside.told(folder) == {"views": []}
    answer = ask(beside.page(folder), "profile")
    assert answer["choice"]["problem"] is None
    assert answer["mean_ms"] > 0


# Overview


@these("torch_1_9", RESNET, "hta_cpuonly_gloo_rank34of300")
def test_steps_and_their_parts(beside, folder):
    for there, here in beside.pairs(folder):
        assert_same(here.steps, there.steps)


def test_since_torch_1_12_calls_of_the_runtime_and_loading_are_lost_there(beside):
    """It does not know `cuda_runtime`, and drops annotations but of collectives."""
    pairs = zip(beside.pairs("since_1_12"), beside.pairs("torch_1_9"), strict=True)
    for (there, here), (_, before) in pairs:
        assert_same(here.steps, before.steps)
        for step, parts in there.steps.items():
            assert parts.keys() & {"runtime", "dataloader"} == set()
            # What it loses is other time of it, or that of operators around.
            lost = here.steps[step]["dataloader"]
            assert parts["other"] == here.steps[step]["other"] + lost
            hosts = here.steps[step]["cpu_exec"] + here.steps[step]["runtime"]
            assert parts["cpu_exec"] == hosts


def test_on_the_host_what_is_no_operator_is_other_time_there(beside):
    ((there, here),) = beside.pairs("cpu")
    assert here.steps.keys() == there.steps.keys()
    for step, parts in there.steps.items():
        own = here.steps[step]
        assert sum(own.values()) == pytest.approx(sum(parts.values()), abs=0.51)
        assert own["dataloader"] > 0
        assert "dataloader" not in parts


@these(NCCL)
def test_kernels_of_nccl_are_computation_there(beside, folder):
    for there, here in beside.pairs(folder):
        for step, parts in there.steps.items():
            own = here.steps[step]
            assert parts["communication"] < 0.01 * own["communication"]
            busy = own["kernel"] + own["communication"]
            assert parts["kernel"] + parts["communication"] == pytest.approx(
                busy, rel=0.02
            )


@these("torch_1_9", "advised", RESNET)
def test_the_use_of_the_device(beside, folder):
    for there, here in beside.pairs(folder):
        assert here.device_use == pytest.approx(there.device_use, abs=0.006)


@these("since_1_12", NCCL, "hta_simple_add", "hta_triton")
def test_without_launches_it_knows_no_tensor_cores(beside, folder):
    for there, here in beside.pairs(folder):
        assert here.device_use.keys() - there.device_use.keys() == {"tensor_core_share"}
        known = {key: here.device_use[key] for key in there.device_use}
        assert known == pytest.approx(there.device_use, abs=0.006)


RULES = {
    "loading": r"([\d.]+)% of the step time is in DataLoader",
    "communicating": r"([\d.]+)% of the step time is in communication",
    "near_capacity": r"limit of device memory capacity \(([\d.]+)%",
    "no_tensor_cores": r"Kernels with (\d+)% time are launched by Tensor Cores eligible",
    "idle": r"GPU (\d+) has low utilization",
}
EVIDENCE = {
    "loading": "loading",
    "communicating": "exposed",
    "no_tensor_cores": "eligible",
}


@these("torch_1_9", "advised", RESNET)
def test_recommendations_have_the_same_numbers(beside, folder):
    for there, here in beside.pairs(folder):
        found = {one["key"]: one for one in here.profile["findings"]}
        said = {
            key: float(match[1])
            for key, pattern in RULES.items()
            for text in there.recommendations
            if (match := re.search(pattern, text))
        }
        assert len(said) == len(there.recommendations)
        if {"loading", "host_bound"} & found.keys() and "idle" not in found:
            said.pop("idle", None)  # said once, with what the device waits for
        assert found.keys() & RULES.keys() == said.keys()
        if folder == "advised":
            assert said.keys() >= RULES.keys() - {"idle"}
        for key, number in said.items():
            if key == "near_capacity":
                assert f"{number:.1f} % full" in found[key]["sentence"]
            elif key == "idle":
                assert found[key]["sentence"].startswith(f"GPU {number:.0f} is used")
            elif key != "communicating":
                values = {e["key"]: e["value"] for e in found[key]["evidence"]}
                assert values[EVIDENCE[key]] == pytest.approx(number, abs=0.51)


def test_communication_there_leaves_out_what_copies_hide_and_adds_its_launch(beside):
    """Here copies hide nothing, and the host's call is no communication."""
    for folder, copies_us, launch_us in (("torch_1_9", 30, 0), ("advised", 0, 5)):
        there, here = beside.pairs(folder)[0]
        (finding,) = [
            f for f in here.profile["findings"] if f["key"] == "communicating"
        ]
        exposed = {e["key"]: e["value"] for e in finding["evidence"]}["exposed"]
        theirs = [
            re.search(RULES["communicating"], one) for one in there.recommendations
        ]
        (share,) = [float(match[1]) for match in theirs if match]
        mean_us = here.profile["mean_ms"] * MS
        moved = 100 * (copies_us - launch_us) / mean_us
        assert share + moved == pytest.approx(exposed, abs=0.06)


# Operators


@all_but(OF_ASCEND, "hta_ns_resolution_ddp1")  # its times in floats of 1e15 us
def test_operators_and_their_calls_and_time_on_the_host(beside, folder):
    for there, here in beside.pairs(folder):
        own = {
            name: row for name, row in here.operators.items() if name in there.operators
        }
        keys = ("host_self", "device_self", "device_total", "tensor_cores")
        theirs = without(there.operators, *keys)
        assert_same(without(own, *keys), theirs)
        others = here.operators.keys() - there.operators.keys()
        # What was launched outside operators has a row here.
        assert all(here.operators[name]["device_self"] > 0 for name in others)


@these("torch_1_9", "advised", "cpu", RESNET, "torch213_cpu_transformer", DDP)
def test_operators(beside, folder):
    for there, here in beside.pairs(folder):
        assert_same(here.operators, there.operators)


@these("since_1_12", NCCL, B200, MI300, "hta_simple_add", "hta_triton")
def test_since_torch_1_12_operators_launch_nothing_there(beside, folder):
    for there, here in beside.pairs(folder):
        assert {row["device_total"] for row in there.operators.values()} == {0}
        assert sum(row["device_self"] for row in here.operators.values()) > 0


def test_what_operators_launch_is_as_in_the_same_trace_of_torch_1_9(beside):
    pairs = zip(beside.pairs("since_1_12"), beside.pairs("torch_1_9"), strict=True)
    for (_, here), (_, before) in pairs:
        assert here.operators == before.operators


def test_stacks_of_todays_traces_are_here_alone(beside):
    ((there, here),) = beside.pairs("cpu")
    rows = there.answers["operation/table"]["data"]
    assert not any(row["has_call_stack"] for row in rows)
    answer = ask(beside.page("cpu"), "operator", source=here.source, name="aten::addmm")
    frames = [frame for stack in answer["stacks"] for frame in stack["frames"]]
    assert any("trained_on_cpu" in frame for frame in frames)


# Kernels

MAX_NAME = 1000
MISSED_CORES = (
    B200,
    MI300,
    "hta_amd_rocm62",
    "hta_simple_add",
    "tracelens_inference_vllm_decode_full_graph_execution",
    "tracelens_torch_compile_triton_trace",
)
"""It does not know the names of Hopper and later, AMD's, nor cuDNN's `sm80_xmma_fprop`."""


@all_but(OF_ASCEND)
def test_kernels(beside, folder):
    for there, here in beside.pairs(folder):
        theirs = {
            name[:MAX_NAME]: row
            for name, row in there.kernels.items()
            if len(name) <= MAX_NAME
        }
        own = {name: row for name, row in here.kernels.items() if name in theirs}
        knows_it = folder not in MISSED_CORES
        keys = () if knows_it else ("uses_tensor_cores",)
        assert_same(without(own, *keys), without(theirs, *keys))
        if not knows_it:
            assert not any(row["uses_tensor_cores"] for row in theirs.values())
            assert any(row["uses_tensor_cores"] for row in own.values())


# Memory


@these(
    "torch_1_9", "since_1_12", "advised", "cpu", RESNET, "torch213_cpu_transformer", DDP
)
def test_memory_of_operators(beside, folder):
    for there, here in beside.pairs(folder):
        assert here.memory == there.memory


@these(FSDP2)
def test_what_annotations_allocate_is_of_operators_around_them_there(beside, folder):
    """It drops them; here what FSDP2 gathers and reduces counts for none."""
    for there, here in beside.pairs(folder):
        differ = [key for key, row in there.memory.items() if here.memory[key] != row]
        assert len(differ) == 4
        assert all("Backward" in name for _, name in differ)


@these("torch_1_9", "since_1_12", "advised", "cpu", DDP)
def test_peaks_and_allocations(beside, folder):
    for there, here in beside.pairs(folder):
        assert here.peaks == pytest.approx(there.peaks, abs=0.06)
        assert here.allocations.keys() == there.allocations.keys()
        for device, theirs in there.allocations.items():
            own = here.allocations[device]
            assert [size for size, _ in own] == [size for size, _ in theirs]
            lives = [life for _, life in own]
            assert lives == pytest.approx([life for _, life in theirs], abs=0.02)


@these(MI300)
def test_memory_of_an_amd_device_ends_in_an_error_there(beside, folder):
    ((there, here),) = beside.pairs(folder)
    assert there.answers["memory_curve"]["status"] == 500
    assert there.answers["memory_events"]["status"] == 500
    assert here.peaks == {"GPU0": 146394112, "CPU": 8}


# Modules


@these("torch_1_9", "since_1_12", "cpu", "torch213_cpu_transformer", MI300)
def test_modules(beside, folder):
    for there, here in beside.pairs(folder):
        assert [row[:3] for row in here.modules] == [row[:3] for row in there.modules]
        times = [row[3] for row in here.modules]
        assert times == pytest.approx([row[3] for row in there.modules], abs=0.51)


@these(B200)
def test_a_module_that_others_share_counts_for_each_of_them_there(beside, folder):
    """Calls of all places at each place: 36 x 36 where each of 36 layers calls it once."""
    ((there, here),) = beside.pairs(folder)
    shared = "YaRNScalingRotaryEmbedding_0"
    theirs = [row[:3] for row in there.modules if row[0] == shared]
    own = [row[:3] for row in here.modules if row[0] == shared]
    assert theirs == [(shared, 36, 36)] * 36
    assert own == [(shared, 1, 1)] * 36
    others = [row[:3] for row in there.modules if row[0] != shared]
    assert [row[:3] for row in here.modules if row[0] != shared] == others


# Ranks

PARTS = ("computation_ms", "overlap_ms", "communication_ms", "other_ms")
LAUNCH_US = 20
"""The host's call of a collective, which it adds to the kernel's time."""


@these("torch_1_9", "since_1_12")
def test_ranks_beside_each_other(beside, folder):
    answers = beside.told(folder)["All.1"]
    answer = ask(beside.page(folder), "distributed")
    ranks, table = columns_of(answer["ranks"]), columns_of(answer["collectives"])
    for rank, wait_us in enumerate(WAITS_US):
        overlap = answers["distributed/overlap"]["data"]["all"][f"host_{rank}"]
        alone, hidden, *others = [ranks[key][rank] * MS for key in PARTS]
        # There kernels hide the host's call as well.
        here = [alone - LAUNCH_US, hidden + LAUNCH_US, *others]
        assert here == pytest.approx(overlap, abs=1)
        moved, waited = answers["distributed/waittime"]["data"]["all"][f"host_{rank}"]
        assert ranks["transfer_ms"][rank] * MS == pytest.approx(moved - LAUNCH_US)
        assert ranks["waiting_ms"][rank] * MS == pytest.approx(waited)
        assert waited == wait_us
        (row,) = answers["distributed/commops"]["data"][f"host_{rank}"]["rows"]
        name, calls, size, _, latency, *_ = row
        assert name.removeprefix("nccl:") == table["kind"][rank]
        assert (table["num_calls"][rank], table["num_bytes"][rank]) == (calls, size)
        own = table["total_ms"][rank] * MS
        assert latency - calls * LAUNCH_US == pytest.approx(own)


@these(DDP, FSDP2)
def test_collectives_of_gloo(beside, folder):
    answers = beside.told(folder)["All.1"]
    table = columns_of(ask(beside.page(folder), "distributed")["collectives"])
    keys = ("num_calls", "num_bytes", "total_ms", "transfer_ms")
    own = {
        (int(rank), f"gloo:{kind}"): [float(table[key][at]) for key in keys]
        for at, (rank, kind) in enumerate(
            zip(table["rank"], table["kind"], strict=True)
        )
    }
    theirs = {
        (int(worker[-1]), name): [calls, size, latency / MS, moved / MS]
        for worker, of_worker in answers["distributed/commops"]["data"].items()
        for name, calls, size, _, latency, _, moved, _ in of_worker["rows"]
    }
    assert own.keys() == theirs.keys()
    for key, row in theirs.items():
        assert own[key] == pytest.approx(row, abs=0.001), key


@these(DDP, FSDP2)
def test_calls_that_wait_for_gloo_hide_it_there(beside, folder):
    overlap = beside.told(folder)["All.1"]["distributed/overlap"]["data"]["all"]
    ranks = columns_of(ask(beside.page(folder), "distributed")["ranks"])
    for rank in (0, 1):
        _, hidden, exposed, _ = overlap[f"host_{rank}"]
        both = (ranks["overlap_ms"][rank] + ranks["communication_ms"][rank]) * MS
        assert hidden + exposed == pytest.approx(both, abs=2)
        assert hidden > 0.4 * both
        assert ranks["overlap_ms"][rank] * MS < 0.01 * both


@these(NCCL)
def test_most_of_nccl_is_no_communication_there(beside, folder):
    overlap = beside.told(folder)["All.1"]["distributed/overlap"]["data"]["all"]
    ranks = columns_of(ask(beside.page(folder), "distributed")["ranks"])
    for rank in (0, 1):
        _, hidden, exposed, _ = overlap[f"rank_{rank}"]
        both = (ranks["overlap_ms"][rank] + ranks["communication_ms"][rank]) * MS
        assert hidden + exposed < 0.01 * both
        # Not all that the ranks sent each other is in the files: waiting is unknown.
        assert math.isnan(ranks["waiting_ms"][rank])
