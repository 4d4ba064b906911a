"""Advice is given where its condition is known to be true: not on already, nor impossible."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from memboard.collector.format.snapshots import tables_of
from memboard.tb_plugin.analysis.findings.conditions import Setup, recorded_setup
from tests.builders import RunBuilder
from tests.made_snapshots import frame
from tests.oom_cases.bench import card_bytes
from tests.oom_cases.cases import make
from tests.oom_reports import add_report
from tests.tb_plugin.analysis.made_programs import (
    GIB,
    MIB,
    Program,
    Training,
    at,
    in_loop,
    in_module,
)
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.test_verdict_of_programs import (
    MADE,
    advice,
    verdict_of,
    verdicts,
)

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES = "/opt/venv/lib/python3.12/site-packages/"
EXPAND = "expandable_segments:True"


def settings_of(one: dict[str, Any]) -> str:
    return " ".join(told["setting"] for told in one["advice"])


def fragmented(tmp_path: Path, change: Any = lambda made: None) -> dict[str, Any]:
    """The verdict on scattered free memory, with the snapshot changed before."""
    made = make("fragmented", 1).snapshot
    change(made)
    path = tmp_path / "job" / "snapshot.pickle"
    path.parent.mkdir()
    path.write_bytes(pickle.dumps(made, protocol=4))
    (one,) = verdicts(tmp_path)
    assert one["key"] == "fragmented"
    return one


def test_pages_can_be_combined_where_that_is_off_and_possible(tmp_path):
    assert EXPAND in settings_of(fragmented(tmp_path))


def switched_on(made: dict[str, Any]) -> None:
    made["allocator_settings"]["expandable_segments"] = True


def by_variable(made: dict[str, Any]) -> None:
    """A release that records the variable under a name of its own."""
    del made["allocator_settings"]["expandable_segments"]
    made["allocator_settings"]["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"


def toggled(made: dict[str, Any]) -> None:
    """On for a while, as verl does around its rollouts: some segments are left."""
    made["segments"][0]["is_expandable"] = True


def in_pools(made: dict[str, Any]) -> None:
    """The first segment, and what happened in it, is of a pool of the user's."""
    made["segments"][0]["segment_pool_id"] = (0, 3)


def of_engine(*path: str, name: str = "load_model"):
    """A frame of an engine or allocator below the first allocation."""

    def change(made: dict[str, Any]) -> None:
        block = made["segments"][0]["blocks"][0]
        block["frames"] = [frame(name, 210, PACKAGES + "/".join(path)), at("main", 4)]

    return change


@pytest.mark.parametrize(
    "change",
    [
        switched_on,
        by_variable,
        toggled,
        in_pools,
        of_engine("vllm", "device_allocator", "cumem.py"),
        of_engine("vllm", "v1", "worker", "gpu_worker.py"),
        of_engine("verl", "workers", "fsdp_workers.py"),
        of_engine("sglang", "srt", "model_executor", "model_runner.py"),
        of_engine("torch_memory_saver", "entrypoint.py", name="region"),
        of_engine("megatron", "core", "nccl_allocator.py", name="__enter__"),
        of_engine("torch", "cuda", "memory.py", name="use_mem_pool"),
        of_engine("job", "my_pluggable_allocator.py", name="alloc"),
    ],
)
def test_pages_are_not_combined_where_that_is_on_impossible_or_not_known(
    tmp_path, change
):
    one = fragmented(tmp_path, change)
    assert "expandable_segments" not in settings_of(one) + advice(one)
    assert "Allocate long-lived tensors first" in advice(one)


def test_blocks_of_other_streams_know_the_condition_too(tmp_path):
    def said(name: str, *engine: dict[str, Any]) -> str:
        program = Program()
        program.alloc(12 * GIB, MADE)
        program.let_go(program.alloc(4 * GIB, [*engine, *in_loop(20)], stream=7))
        (tmp_path / name).mkdir()
        one = verdict_of(tmp_path / name, program, size=2 * GIB, device_free=MIB)
        assert one["key"] == "fitting_block_free"
        return settings_of(one)

    engine = at("use_memory_pool", 210, PACKAGES + "vllm/device_allocator/cumem.py")
    assert EXPAND in said("own")
    assert EXPAND not in said("beside", engine)


@pytest.mark.parametrize(
    ("version", "names"),
    [
        ("2.6.0+cu124", ["PYTORCH_CUDA_ALLOC_CONF"]),
        ("2.8.0", ["PYTORCH_CUDA_ALLOC_CONF"]),
        ("2.9.0a0+git1", ["PYTORCH_ALLOC_CONF"]),
        ("2.14.1", ["PYTORCH_ALLOC_CONF"]),
        ("3.0", ["PYTORCH_ALLOC_CONF"]),
        ("", ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"]),
        ("unknown", ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"]),
    ],
)
def test_the_variable_is_that_of_the_release(version, names):
    setup = recorded_setup("cuda", {"torch": version}, {})
    found = setup.allocator_variable("a:b").split(" ")
    assert found == [f"{name}=a:b" for name in names]


def test_what_is_not_known_allows_nothing():
    setup = Setup()
    assert not any((setup.can_expand, setup.can_record_history, setup.can_keep_stacks))
    assert not recorded_setup("cuda", {}, {}).can_record_history
    rocm = Setup(expandable=False, other_allocator=False, is_rocm=True)
    assert not rocm.can_expand


@pytest.mark.parametrize(
    ("device", "enabled", "is_advised"),
    [("cuda", False, True), ("cuda", True, False), ("cpu", False, False)],
)
def test_a_history_is_advised_where_it_is_off_and_can_be_on(
    tmp_path, device, enabled, is_advised
):
    builder, steps = RunBuilder(tmp_path), np.arange(200)
    held = 30 * GIB + steps * 50 * MIB
    header = {"device_type": device, "config": {"history": {"enabled": enabled}}}
    rank = builder.rank(0, **header)
    rank.steps(steps, allocated_bytes=held, allocated_peak_bytes=held + 10 * GIB)
    found = Page(tmp_path).of_run("/findings")["findings"]
    (one,) = [finding for finding in found if finding["key"] == "growing_memory"]
    assert ("history=True" in advice(one)) == is_advised


def test_a_block_that_came_free_while_the_attempt_failed(tmp_path):
    program = Program()
    program.alloc(30 * GIB, MADE)
    program.let_go(program.alloc(40 * GIB, in_loop(44)))
    one = verdict_of(tmp_path, program, size=35 * GIB, device_free=9 * GIB)
    assert one["key"] == "fitting_block_free"
    assert "a free block of 40.0 GiB would have fitted" in one["sentence"]
    assert "became free only while this attempt failed" in one["sentence"]
    assert "torch.cuda.synchronize()" in one["advice"][0]["text"]
    assert "record_stream" in one["advice"][1]["text"]
    assert "missing" not in advice(one)


def test_of_an_unknown_pool_no_block_is_the_own_one(tmp_path):
    """Before torch 2.13 a request does not name its pool: this one is of a capture."""
    program = Program()
    program.alloc(30 * GIB, MADE)
    program.let_go(program.alloc(40 * GIB, in_loop(44)))
    program.alloc(4 * GIB, in_loop(50), pool=2)
    one = verdict_of(tmp_path, program, size=35 * GIB, device_free=5 * GIB)
    assert "while this attempt failed" not in one["sentence"]


VLLM = PACKAGES + "vllm/v1/worker/gpu_model_runner.py"
NO_GRAD = at("decorate_context", 120, PACKAGES + "torch/utils/_contextlib.py")
CACHES = [
    [at("_allocate_kv_cache_tensors", 31, VLLM)],
    [at("allocate", 31, "/home/me/serve/cache_engine.py")],
]


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("num_forwards", [0, 1, 3])
def test_a_server_is_advised_nothing_that_only_a_training_can_do(
    tmp_path, cache, num_forwards
):
    """Also where its first forward fails, which keeps what it made so far."""
    program = Program()
    program.alloc(20 * GIB, MADE)
    for _ in range(40):
        program.alloc(GIB, cache)
    for _ in range(num_forwards):
        program.free(program.alloc(GIB, in_module(22)))
    for layer in range(3):
        program.alloc(200 * MIB, in_module(20 + layer))
    one = verdict_of(tmp_path, program, frames=in_module(25))
    assert "The KV cache holds 40.0 GiB" in advice(one)
    for word in ("gradient", "accumulation", "backward", "zero_grad", "optimizer"):
        assert word not in advice(one)


def test_who_records_no_graph_is_advised_no_accumulation(tmp_path):
    program = Program()
    program.alloc(60 * GIB, MADE)
    for layer in range(3):
        program.alloc(200 * MIB, [*in_module(20 + layer), NO_GRAD])
    frames = [*in_module(25), NO_GRAD]
    one = verdict_of(tmp_path, program, frames=frames)
    assert "smaller batch or shorter sequences" in advice(one)
    assert "accumulation" not in advice(one)
    assert "torch.utils.checkpoint" not in advice(one)


def test_recomputing_activations_is_not_promised_to_free_them_all(tmp_path):
    training = Training(weight=64 * MIB)
    for _ in range(3):
        training.step(64 * MIB)
    for layer in range(12):
        training.alloc(GIB, in_module(22 + layer))
    one = verdict_of(tmp_path, training)
    (recompute,) = [a for a in one["advice"] if "torch.utils.checkpoint" in a["text"]]
    assert recompute["gain"] is None
    assert "have to stay" in recompute["text"]


@pytest.mark.parametrize(
    ("device", "enabled", "words"),
    [
        ("cuda", False, "Pass history=True to mb.record"),
        ("cuda", True, "history=True was set, but nothing was captured"),
        ("cpu", False, "On a CPU, PyTorch keeps none"),
    ],
)
def test_a_tab_without_histories_says_what_brings_one(tmp_path, device, enabled, words):
    config = {"history": {"enabled": enabled}}
    RunBuilder(tmp_path).simple(2, 4, device_type=device, config=config)
    empty = {one["tab"]: one for one in Page(tmp_path).of_run("/overview")["empty"]}
    assert empty["blocks"]["how"].startswith(words)
    assert empty["segments"]["how"] == empty["blocks"]["how"]
    assert ("Pass history=True" in empty["blocks"]["how"]) == (words[0] == "P")


def error_of(tmp_path: Path, **report: Any) -> dict[str, Any]:
    """What is said of an error that the recorder reported, without a history."""
    rank = RunBuilder(tmp_path / "job").rank(0, device_type="cuda")
    add_report(rank, **report)
    rank.close(how="exception")
    (one,) = verdicts(tmp_path)
    return one


# 60 GiB are free on the device, and 2 GiB were asked for.
ROOM = {
    "device_free_bytes": 60 * GIB,
    "memory": {"reserved_bytes": 15 * GIB, "allocated_bytes": 14 * GIB},
}


def test_a_recorded_limit_is_a_cause(tmp_path):
    one = error_of(tmp_path, device_limit_bytes=16 * GIB, **ROOM)
    assert one["key"] == "process_limit"
    assert one["sentence"].startswith("A limit of 16.0 GiB on this process")
    assert "raise the limit" in one["advice"][0]["text"]


@pytest.mark.parametrize("limit", [None, 40 * GIB])
def test_no_limit_and_one_that_was_not_reached_are_none(tmp_path, limit):
    one = error_of(tmp_path, device_limit_bytes=limit, **ROOM)
    assert one["key"] == "unsure"
    assert "60.0 GiB free: why it was refused was not recorded" in one["sentence"]
    assert "raise the limit" not in advice(one)


FRACTION = "per_process_memory_fraction:0.2,max_split_size_mb:512"


def test_a_fraction_among_the_settings_is_a_limit(tmp_path):
    settings = {"settings": FRACTION, "backend": "native"}
    one = error_of(tmp_path, allocator=settings, **ROOM)
    assert one["key"] == "process_limit"
    named = "A limit of 16.0 GiB on this process (per_process_memory_fraction:0.2 in"
    assert one["sentence"].startswith(named)
    assert "per_process_memory_fraction:0.2" in one["advice"][0]["text"]


@pytest.mark.parametrize(
    "settings",
    ["per_process_memory_fraction:1.0", "per_process_memory_fraction:0.5", "a:b"],
)
def test_a_fraction_that_was_not_reached_is_none(tmp_path, settings):
    one = error_of(tmp_path, allocator={"settings": settings}, **ROOM)
    assert one["key"] == "unsure"


@pytest.mark.parametrize(
    ("version", "name"),
    [("2.8.0", "PYTORCH_CUDA_ALLOC_CONF"), ("2.11.0", "PYTORCH_ALLOC_CONF")],
)
def test_a_recording_knows_the_release_and_a_history_what_is_on(
    tmp_path, version, name
):
    made = make("fragmented", 1)
    figures = dict(made.truth.facts)
    for is_on in (False, True):
        if is_on:
            switched_on(made.snapshot)
        folder = tmp_path / str(is_on)
        rank = RunBuilder(folder / "job").rank(0, versions={"torch": version})
        sizes = {
            size: figures[f"{size}_bytes"] for size in ("requested", "device_free")
        }
        sizes["device_total"] = card_bytes("A100-40")
        add_report(rank, **{f"{size}_bytes": known for size, known in sizes.items()})
        rank.capture(
            "history",
            "",
            step=40,
            iteration=0,
            label="oom",
            context="oom",
            meta={"report": 1},
            tables=tables_of(made.snapshot),
        )
        rank.close(how="exception")
        (one,) = verdicts(folder)
        assert one["key"] == "fragmented"
        assert settings_of(one).strip() == ("" if is_on else f"{name}={EXPAND}")
