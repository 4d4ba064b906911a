"""What is in use already, or cannot work there, is not advised; nor is what is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from memboard.tb_plugin.analysis.findings.losses import steps_missing
from memboard.tb_plugin.analysis.findings.steps import slow_every
from memboard.tb_plugin.analysis.findings.stragglers import straggling
from memboard.tb_plugin.analysis.findings.trace.rules import trace_findings
from memboard.tb_plugin.analysis.ranks.stragglers import Straggler
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.analysis.trace.trace import TraceFacts
from memboard.tb_plugin.api.overview import RankLoss
from tests.made_snapshots import frame
from tests.tb_plugin.analysis.made_programs import (
    GIB,
    MIB,
    TORCH,
    Program,
    Training,
    at,
    in_loop,
    in_module,
    in_optimizer,
)
from tests.tb_plugin.pages.test_verdict_of_programs import MADE, advice, verdict_of
from tests.traces_builder import MadeTrace

if TYPE_CHECKING:
    from pathlib import Path

CHECKPOINT = frame("checkpoint", 489, TORCH + "utils/checkpoint.py")


def activations(tmp_path: Path, *beside: dict[str, Any]) -> str:
    training = Training(weight=64 * MIB)
    for _ in range(3):
        training.step(64 * MIB)
    for layer in range(12):
        training.alloc(GIB, [*in_module(22 + layer), *beside])
    return advice(verdict_of(tmp_path, training))


def test_activations_that_are_recomputed_already(tmp_path):
    assert "Recompute activations in backward" in activations(tmp_path)
    said = activations(tmp_path / "other", CHECKPOINT)
    assert "Recompute activations" not in said
    assert "Activations are recomputed already" in said


def test_inputs_are_not_recomputed(tmp_path):
    """They fold into the activations of a legend, and a checkpoint frees none of them."""
    fetched = frame("__next__", 701, TORCH + "utils/data/dataloader.py")
    training = Training(weight=64 * MIB)
    for _ in range(3):
        training.step(64 * MIB)
    for _ in range(12):
        training.alloc(GIB, [fetched, *in_loop(40)])
    one = verdict_of(tmp_path, training)
    assert one["held_by"][0]["category"] == "activation"
    assert "Recompute activations" not in advice(one)


@pytest.fixture(autouse=True)
def other(tmp_path):
    (tmp_path / "other").mkdir()


def of_optimizer(
    tmp_path: Path, name: str, file: str = TORCH + "optim/adamw.py"
) -> str:
    training = Training(weight=GIB)
    training.backward(training.forward(16 * MIB), 16 * MIB)
    frames = [frame(name, 151, file), *in_optimizer()[1:]]
    for _ in range(9):
        training.alloc(GIB, frames)
    return advice(verdict_of(tmp_path, training, frames=frames))


@pytest.mark.parametrize(
    ("name", "makes_copies"),
    [
        ("_multi_tensor_adamw", True),
        ("_init_group", True),
        ("_single_tensor_adamw", False),
        ("_fused_adamw", False),
    ],
)
def test_an_optimizer_that_makes_no_copies_is_not_told_to_stop(
    tmp_path, name, makes_copies
):
    said = of_optimizer(tmp_path, name)
    assert ("fused=True, or foreach=False" in said) == makes_copies
    assert "8 bits" in said


def test_states_in_8_bits_are_not_advised_again(tmp_path):
    file = "/opt/site-packages/bitsandbytes/optim/optimizer.py"
    said = of_optimizer(tmp_path, "init_state", file)
    assert "8 bits" not in said
    assert "AdamW8bit" not in said.replace("PagedAdamW8bit", "")
    assert "offload it to the host" in said


def test_gradients_may_be_accumulated(tmp_path):
    training = Training(weight=GIB)
    training.step(16 * MIB)
    training.backward(training.forward(16 * MIB), 16 * MIB)
    training.forward(16 * MIB)
    said = advice(verdict_of(tmp_path, training))
    assert "Unless they are accumulated over several batches, zero_grad" in said


@pytest.mark.parametrize(
    ("size", "is_large"), [((2 * 4096 + 8 * 16) << 10, False), (32 * MIB, True)]
)
def test_workspaces_of_the_default_cannot_be_made_smaller(tmp_path, size, is_large):
    native = [frame("at::cuda::getCurrentCUDABlasHandle()", 0, "??"), *in_loop(12)]
    program = Program()
    program.alloc(8 * GIB, MADE)
    for stream in range(64):
        program.alloc(size, native, stream=stream)
    said = advice(verdict_of(tmp_path, program))
    assert "cuBLAS workspaces hold" in said
    assert ("CUBLAS_WORKSPACE_CONFIG" in said) == is_large


def test_a_checkpoint_is_loaded_by_the_way_of_its_loader(tmp_path):
    program = Program()
    program.alloc(8 * GIB, MADE)
    for _ in range(8):
        loader = at("load_file", 313, "/opt/site-packages/safetensors/torch.py")
        program.alloc(GIB, [loader, *in_loop(12)])
    said = advice(verdict_of(tmp_path, program))
    assert 'safetensors: device="cpu"' in said


# Of steps


@pytest.mark.parametrize(
    "part", ["", "other", "forward", "zero_grad", "eval", "checkpoint", "dataloader"]
)
def test_a_part_that_was_timed_is_not_outside_the_timed_parts(part):
    late = Straggler(3, 0.9, 0.4, part, 0.4, stands_out=True, by_part=bool(part))
    texts = [straggling([late], {}, 1.0, 8).advice[0].text]
    steps = np.arange(200)
    slow = np.where(steps % 20 == 19, 1.0, 0.2)
    parts = {}
    if part:
        took = np.where(steps % 20 == 19, 0.85, 0.05)
        parts = {"backward": np.full(200, 0.1)}
        if part != "other":
            parts[part] = took
    one = slow_every(steps, slow, parts, 3)
    texts += [told.text for told in one.advice]
    outside = [text for text in texts if "outside the timed parts" in text]
    assert len(outside) == (2 if part == "other" else 0)


def loss(**numbers: int) -> RankLoss:
    known = dict.fromkeys(("num_dropped", "num_unwritten", "num_damaged"), 0)
    return RankLoss(
        **{**known, **numbers},
        rank=0,
        attempt=0,
        num_steps=100,
        damaged=(),
        num_summed_up=0,
        is_stopped=False,
        cut_seconds=0.0,
        cut_steps=None,
        num_traces=0,
        num_lost_traces=0,
        lost_traces=(),
    )


def test_each_cause_of_missing_steps_has_its_own_advice():
    def said(**numbers: int) -> str:
        return " ".join(one.text for one in steps_missing([loss(**numbers)]).advice)

    assert "flush_seconds" not in said(num_dropped=3)
    assert "shorter flush_seconds" in said(num_unwritten=3)
    assert "flush_seconds" not in said(num_damaged=3)


# Of traces

A100 = {"id": 0, "computeMajor": 8, "computeMinor": 0, "totalGlobalMem": 1000}
V100 = {**A100, "computeMajor": 7}


def found(
    *names: str, kernels: int = 40, device: dict[str, Any] = A100
) -> dict[str, str]:
    """Advice of a trace whose device mostly waits, by finding."""
    made = MadeTrace()
    made.slice("main", "ProfilerStep#1", 0, 1_000_000, "user_annotation")
    for place, name in enumerate(names):
        is_call = name.startswith("cuda")
        category = "cuda_runtime" if is_call else "cpu_op"
        if "#" in name or "Parallel" in name:
            category = "user_annotation"
        made.slice("main", name, 1000 + 2000 * place, 1500, category)
    made.slice("main", "aten::mm", 90_000, 900_000)
    for at_ns in range(kernels):
        made.kernel(100_000 + at_ns * 20_000, 100_000 + at_ns * 20_000, 4_000, "sgemm")
    profile = TraceProfile(made.build(facts=TraceFacts(devices=(device,))))
    return {
        one.key: " ".join(told.text for told in one.advice)
        for one in trace_findings(profile)
    }


def test_a_device_that_waits_for_the_host_is_told_what_is_not_in_use():
    plain = found()
    assert "torch.compile" in plain["host_bound"]
    assert "CUDA graphs" in plain["host_bound"]
    assert ".item()" not in plain["host_bound"]
    assert "optimizer" not in plain["host_bound"]
    reads = found("aten::_local_scalar_dense", "Optimizer.step#AdamW.step")
    assert ".item()" in reads["host_bound"]
    assert "fused or foreach optimizer" in reads["host_bound"]
    assert "fused or foreach optimizer" in reads["small_kernels"]
    used = found(
        "Torch-Compiled Region: 0/0",
        "cudaGraphLaunch",
        "Optimizer.step#AdamW.step",
        "aten::_fused_adamw_",
    )
    for text in (used["host_bound"], used["small_kernels"]):
        assert "torch.compile" not in text
        assert "CUDA graphs" not in text
        assert "fused" not in text


def test_the_learning_rate_is_a_trainings():
    assert "learning rate" not in found()["host_bound"]
    assert "learning rate" in found("Optimizer.step#SGD.step")["host_bound"]


def test_a_device_that_waits_for_data_is_told_that_alone():
    made = MadeTrace()
    made.slice("main", "ProfilerStep#1", 0, 1_000_000, "user_annotation")
    loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    made.slice("main", loader, 0, 700_000, "user_annotation")
    made.kernel(750_000, 750_000, 200_000)
    profile = TraceProfile(made.build(facts=TraceFacts(devices=(A100,))))
    said = {one.key: one.advice for one in trace_findings(profile)}
    assert "idle" not in said
    assert said["loading"][0].text.startswith("Give the DataLoader more workers")


def test_tensor_cores_are_used_by_types_that_they_know():
    assert "bfloat16), or allow TF32" in found(device=A100)["no_tensor_cores"]
    old = found("Optimizer.step#SGD.step", device=V100)["no_tensor_cores"]
    assert "float16, with torch.amp.GradScaler" in old
    assert "set_float32_matmul_precision" not in old


@pytest.mark.parametrize(
    ("names", "has", "lacks"),
    [
        (("DistributedDataParallel.forward",), "no_sync", "FSDP"),
        (("FSDP::post_backward",), "FSDP2", "DDP"),
        ((), "async_op=True", "gradients"),
    ],
)
def test_communication_is_hidden_by_what_the_program_uses(names, has, lacks):
    made = MadeTrace()
    made.slice("main", "ProfilerStep#1", 0, 1_000_000, "user_annotation")
    for name in names:
        made.slice("main", name, 10, 500, "user_annotation")
    made.kernel(0, 0, 300_000)
    made.kernel(400_000, 400_000, 250_000, "ncclDevKernel_AllReduce")
    profile = TraceProfile(made.build(facts=TraceFacts(devices=(A100,))))
    (one,) = [one for one in trace_findings(profile) if one.key == "communicating"]
    said = " ".join(told.text for told in one.advice)
    assert has in said
    assert lacks not in said
