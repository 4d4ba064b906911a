"""The kind `modules`: windows, roots, inputs, and what it says when it cannot."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import nn

from memboard.collector.core.calls import Call
from memboard.collector.core.source import Unavailable
from memboard.collector.errors import ConfigError
from memboard.collector.modules.session import CUDA_ROUNDING_BYTES, rounding_bytes
from memboard.collector.modules.tree import find_root
from tests.collector.modules import models, reduction


def test_a_capture_says_what_it_is(track):
    model, optimizer = models.started(models.mlp, models.plain_step, torch.ones(4, 32))
    tracking = track(model, optimizer)
    capture = tracking.step(models.plain_step, model, optimizer, torch.ones(4, 32))
    assert (capture.kind, capture.function, capture.phase) == (
        "modules",
        "step",
        "train",
    )
    assert (capture.iteration, capture.step) == (1, 1)
    assert capture.meta == {
        "backend": "plain",
        "world": "1",
        "root": "Sequential",
        "devices": ["cpu"],
        "device_type": "cpu",
        "estimate": "",
        "incomplete": False,
        "inputs": "forward",
        "optimizers": 1,
        "torch": str(torch.__version__),
        "rounding_bytes": 1,
        "num_events_dropped": 0,
        "reasons": [],
    }
    for table in capture.tables.values():
        assert len({len(column) for column in table.values()}) == 1
    modules = capture.tables["modules"]
    assert modules["fqn"] == ("Sequential", *(f"Sequential.{i}" for i in range(4)))
    assert modules["path"] == ("", "0", "1", "2", "3")
    assert modules["type"] == ("Sequential", "Linear", "ReLU", "Linear", "ReLU")
    assert modules["parent"].tolist() == [-1, 0, 0, 0, 0]
    assert modules["param_bytes"].tolist() == [0, 33 * 64 * 4, 0, 65 * 32 * 4, 0]


def test_without_a_model_nothing_is_tracked(track):
    tracking = track(None)
    with pytest.raises(Unavailable, match="no model is known") as found:
        tracking.begin()
    assert "model=" in found.value.remedy


def test_a_model_is_not_kept_alive(track):
    tracking = track(models.mlp())
    gc.collect()
    with pytest.raises(Unavailable, match="no model is known"):
        tracking.begin()


def test_a_root_that_does_not_exist_is_an_error_with_its_key(track):
    with pytest.raises(ConfigError, match=r"modules\.root .*'layers\.7'.*'7'.*0, 1"):
        find_root(models.Transformer(), "layers.7")
    with pytest.raises(ConfigError, match=r"has: layers, norm, out, places, tokens\."):
        find_root(models.Transformer(), "decoder")
    with pytest.raises(ConfigError, match=r"not a int"):
        find_root(3, "")
    with pytest.raises(Unavailable, match=r"modules\.root"):
        track(models.Transformer(), root="decoder")


def test_it_is_one_where_recording_starts(tmp_path):
    import memboard as mb

    settings = {"enabled": True, "root": "decoder"}
    with pytest.raises(ConfigError, match=r"modules\.root is 'decoder'"):
        mb.record(tmp_path, model=models.Transformer(), modules=settings)
    settings["root"] = "1.layers"
    several = [models.mlp(), models.Transformer()]
    mb.record(tmp_path, model=several, modules=settings).close()


def test_a_root_below_the_model(track):
    model = models.Transformer()
    tracking = track(model, root="layers.1.mlp")
    capture = tracking.step(lambda: model(models.tokens()).sum().backward())
    assert capture.meta["root"] == "Sequential"
    assert capture.tables["modules"]["path"] == ("", "0", "1", "2")
    log = reduction.Log(capture)
    log.check()
    assert {f for f, *_ in log.rows()} == {
        "Sequential", "Sequential.0", "Sequential.1", "Sequential.2",
    }  # fmt: skip


def test_windows_that_nest_and_overlap_are_parts_of_one_log(track):
    x = torch.ones(4, 32)
    model, optimizer = models.started(models.mlp, models.plain_step, x)
    tracking = track(model, optimizer)
    step = tracking.begin("step")
    loss = model(x).sum()
    backward = tracking.begin("backward")
    loss.backward()
    second = tracking.begin("optimizer")
    inner = tracking.end(backward)
    optimizer.step()
    outer = tracking.end(step)
    assert tracking.kind._session is not None
    optimizer.zero_grad()
    last = tracking.end(second)
    assert tracking.kind._session is None
    logs = {c.function: reduction.Log(c) for c in (inner, outer, last)}
    for log in logs.values():
        log.check()
    for function in ("backward", "optimizer"):
        alive = logs[function].events["time_us"].tolist().count(0)
        assert logs[function].balances[alive] in logs["step"].balances
    both = logs["backward"].events["delta_bytes"].tolist()[-20:]
    assert both in [
        logs["step"].events["delta_bytes"].tolist()[i : i + 20]
        for i in range(len(logs["step"].balances))
    ]
    assert {s for _, s, *_ in logs["backward"].rows()} == {
        "before_pre_backward", "after_post_backward",
    }  # fmt: skip
    assert {s for _, s, *_ in logs["optimizer"].rows()} == {
        "before_optimizer", "after_optimizer",
    }  # fmt: skip
    assert "grad" not in logs["optimizer"].balances[-1]["cpu"]
    assert "grad" in logs["step"].balances[-1]["cpu"]


def test_given_inputs_are_the_inputs(track):
    model, x, y = models.mlp(), torch.ones(4, 32), torch.ones(4, 32)
    tracking = track(model)
    tracking.kind.track_inputs({"x": x, "y": (y, None)})
    first = tracking.step(model, x)
    assert first.meta["inputs"] == "given"
    assert reduction.Log(first).balances[-1]["cpu"]["input"] == x.nbytes + y.nbytes
    second = tracking.step(model, x)  # they were the last window's
    assert second.meta["inputs"] == "forward"
    assert reduction.Log(second).balances[-1]["cpu"]["input"] == x.nbytes
    call = tracking.begin()
    tracking.kind.track_inputs((y,))
    third = tracking.end(call)
    assert reduction.Log(third).balances[-1]["cpu"]["input"] == y.nbytes


def test_keyword_inputs_count(track):
    class Model(nn.Module):
        def forward(self, *, batch):
            return batch["x"] * 2

    model, x = Model(), torch.ones(100)
    capture = track(model).step(lambda: model(batch={"x": x}))
    assert reduction.Log(capture).balances[-1]["cpu"] == {"input": 400}


def test_a_call_that_is_not_known_ends_nothing(track):
    model = models.mlp()
    tracking = track(model)
    call = tracking.begin()
    tracking.kind.end(Call(function="x", phase="train", iteration=9, step=9), None)
    assert tracking.sink.captures == []
    tracking.end(call)


def test_release_takes_everything_off_and_loses_the_open_window(track):
    model = models.mlp()
    hooks = models.hooks_of(model)
    tracking = track(model)
    call = tracking.begin()
    tracking.kind.release()
    tracking.kind.release()
    assert models.hooks_of(model) == hooks
    tracking.kind.end(call, None)
    assert tracking.sink.captures == []


def test_sizes_are_rounded_as_the_devices_allocator_does(monkeypatch):
    monkeypatch.delenv("PYTORCH_NO_CUDA_MEMORY_CACHING", raising=False)
    assert rounding_bytes("cuda") == CUDA_ROUNDING_BYTES == 512
    assert rounding_bytes("cpu") == rounding_bytes("xpu") == 1
    monkeypatch.setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")
    assert rounding_bytes("cuda") == 1


def test_several_models_are_children_of_one(track):
    both = nn.ModuleList([models.mlp(), models.mlp()])
    hooks = models.hooks_of(both)
    optimizers = [torch.optim.AdamW(model.parameters()) for model in both]
    x = torch.ones(4, 32)

    def step():
        made = both[0](x)
        (both[1](made).sum() + both[1](x).sum()).backward()
        for optimizer in optimizers:
            optimizer.step()

    tracking = track(both, *optimizers)
    capture = tracking.step(step)
    log = reduction.Log(capture)
    log.check()
    assert models.hooks_of(both) == hooks
    assert capture.meta["inputs"] == "forward"
    rows = {(f, s, c) for f, s, c, _ in log.rows()}
    assert ("ModuleList.0", "after_post_backward", 0) in rows
    assert ("ModuleList.1", "after_post_forward", 1) in rows
    assert ("ModuleList.1.3", "after_post_backward", 0) in rows


def test_an_optimizer_that_takes_no_weak_reference_is_followed(track):
    class Slotted:
        __slots__ = ("state",)

    class Wrapper:
        def __init__(self, optimizer):
            self.optimizer = optimizer

    optimizer = Slotted()
    optimizer.state = {0: {"moment": torch.ones(10)}}
    model = models.mlp()
    capture = track(model, optimizer, Wrapper(optimizer)).step(model, torch.ones(4, 32))
    assert capture.meta["optimizers"] == 1
    assert reduction.Log(capture).balances[-1]["cpu"]["optimizer"] == 40
