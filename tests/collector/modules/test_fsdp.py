"""FSDP2 models against torch's FSDPMemTracker, byte for byte, on a fake process group.

Where theirs is wrong the rule is stated beside the test:

- Their wrapper of `post_backward` keeps the last parameter's whole gradient alive until
  it returns, so "After Post-Backward" has bytes that the step without a tracker has not
  (`without_their_own`).
- Explicit prefetching gathers outside the moments that they look at: the buffer is
  "Temp" there and "All Gather" here (totals are equal).
- What `checkpoint_wrapper` computes again is "Temp" there and activations here.
- List groups are counted twice there and break every later step; several groups per
  module fail there. These are tested against sizes computed from the model.
"""

from __future__ import annotations

import copy

import pytest
import torch
from torch.distributed._composable import checkpoint
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    checkpoint_wrapper,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard

from tests.collector.modules import models, oracle, reduction

pytestmark = pytest.mark.filterwarnings("ignore:FSDP2-wrapped module")


def sharded(model=None, each=lambda layer: layer, **settings):
    """A transformer with its layers and itself sharded."""
    model = models.Transformer() if model is None else model
    for index, layer in enumerate(model.layers):
        model.layers[index] = fully_shard(each(layer), **settings)
    return fully_shard(model, **settings)


MIXED = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)


def mixed():
    return sharded(mp_policy=MIXED)


def recomputed():
    return sharded(each=checkpoint)


def recomputed_mixed():
    return sharded(each=checkpoint, mp_policy=MIXED)


def wrapped():
    return sharded(each=checkpoint_wrapper)


def offloaded():
    return sharded(offload_policy=CPUOffloadPolicy(pin_memory=False))


def unresharded():
    return sharded(reshard_after_forward=False)


def prefetching():
    model = sharded()
    model.layers[0].set_modules_to_forward_prefetch([model.layers[1]])
    model.layers[1].set_modules_to_backward_prefetch([model.layers[0]])
    return model


def hybrid():
    return sharded(mesh=init_device_mesh("cpu", (2, 2), mesh_dim_names=("r", "s")))


def tensor_parallel():
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    plan = {"mlp.0": ColwiseParallel(), "mlp.2": RowwiseParallel()}
    return sharded(
        each=lambda layer: parallelize_module(layer, mesh["tp"], plan), mesh=mesh["dp"]
    )


def list_groups():
    model = models.Transformer()
    for layer in model.layers:
        fully_shard(layer)
    fully_shard([model.norm, model.out])
    return fully_shard(model)


def without_their_own(states, model):
    """Their states without the gradient that their own wrapper keeps alive."""
    kept = {}
    for name, module in model.named_modules():
        state = getattr(type(module), "_get_fsdp_state", lambda _: None)(module)
        if state is not None:
            *_, last = state._fsdp_param_group.fsdp_params
            whole = last._unsharded_param
            fqn = f"{type(model).__name__}.{name}" if name else type(model).__name__
            whole = whole.to_local() if hasattr(whole, "to_local") else whole
            kept[fqn] = whole.numel() * whole.itemsize
    found = copy.deepcopy(states)
    for (fqn, state), calls in found.items():
        if state == "After Post-Backward":
            for call in calls:
                call["cpu"]["Unsharded Grad"] -= kept[fqn]
                if not call["cpu"]["Unsharded Grad"]:
                    del call["cpu"]["Unsharded Grad"]
    return found


def both(track, make, step=models.train_step, *, num_steps=2):
    """(theirs, our capture, model) of the same step of two equal models."""
    x = models.tokens()
    model, optimizer = models.started(make, step, x, num_steps=num_steps)
    theirs = oracle.fsdp_tracker(model, optimizer, (x,))
    with theirs:
        step(model, optimizer, x)
    model, optimizer = models.started(make, step, x, num_steps=num_steps)
    hooks = models.hooks_of(model)
    capture = track(model, optimizer).step(step, model, optimizer, x)
    if num_steps:  # the first one hooks in FSDP's own
        assert models.hooks_of(model) == hooks
    step(model, optimizer, x)
    return theirs, capture, model


def assert_same(theirs, capture, model):
    expected = without_their_own(oracle.states(theirs), model)
    assert reduction.ours(capture, fsdp=True) == expected
    peaks = reduction.our_peaks(capture, fsdp=True)
    for key, value in oracle.peaks(theirs).items():
        assert peaks[key] == value, key
    assert reduction.our_peak(capture, fsdp=True) == oracle.peak_snapshot(theirs)
    assert capture.meta["reasons"] == []
    assert not capture.meta["incomplete"]


@pytest.mark.usefixtures("fake_world")
@pytest.mark.parametrize(
    "make", [sharded, mixed, recomputed, recomputed_mixed, offloaded, unresharded]
)
@pytest.mark.parametrize("num_steps", [0, 1, 2])
def test_every_state_and_peak_is_theirs(track, make, num_steps):
    assert_same(*both(track, make, num_steps=num_steps))


@pytest.mark.usefixtures("fake_world_of_4")
@pytest.mark.parametrize("make", [hybrid, tensor_parallel])
def test_meshes_of_two_dimensions_are_theirs_too(track, make):
    theirs, capture, model = both(track, make)
    assert_same(theirs, capture, model)
    assert capture.meta["world"] == (
        "replicate 2 x shard 2" if make is hybrid else "shard 2"
    )


@pytest.mark.usefixtures("fake_world")
def test_prefetched_buffers_are_all_gather_buffers(track):
    theirs, capture, model = both(track, prefetching)
    expected = without_their_own(oracle.states(theirs), model)
    found = reduction.ours(capture, fsdp=True)
    gathered = 0
    for key, calls in expected.items():
        for call, own in zip(calls, found[key], strict=True):
            moved = own["cpu"].get("All Gather", 0) - call["cpu"].get("All Gather", 0)
            gathered += moved
            call["cpu"]["Temp"] = call["cpu"].get("Temp", 0) - moved
            call["cpu"]["All Gather"] = call["cpu"].get("All Gather", 0) + moved
            call["cpu"] = {name: size for name, size in call["cpu"].items() if size}
    assert found == expected
    layer = models.param_bytes(models.Block())
    # The first layer's, from the second one's backward on: at three boundaries.
    assert gathered == 3 * layer


@pytest.mark.usefixtures("fake_world")
def test_what_a_checkpoint_wrapper_recomputes_are_activations(track):
    theirs, capture, model = both(track, wrapped)
    expected = without_their_own(oracle.states(theirs), model)
    found = reduction.ours(capture, fsdp=True)
    assert {
        key: calls for key, calls in found.items() if "AC" not in key[1]
    } == expected
    our_peak, their_peak = (
        reduction.our_peak(capture, fsdp=True),
        oracle.peak_snapshot(theirs),
    )
    assert sum(our_peak["cpu"].values()) == sum(their_peak["cpu"].values())
    both_kinds = [
        sum(peak["cpu"].get(name, 0) for name in ("Activation", "Temp"))
        for peak in (our_peak, their_peak)
    ]
    assert both_kinds[0] == both_kinds[1]
    assert our_peak["cpu"]["Activation"] > their_peak["cpu"]["Activation"]
    states = {state for _, state, *_ in reduction.Log(capture).rows()}
    assert {"pre_forward_ac", "post_forward_ac"} <= states


@pytest.mark.usefixtures("fake_world")
@pytest.mark.parametrize(
    ("dim", "layers", "peak"), [(128, 2, 13_759_100), (512, 4, 166_840_028)]
)
def test_the_peaks_on_record(track, dim, layers, peak):
    def make():
        return sharded(models.Transformer(dim=dim, layers=layers))

    data = models.tokens(), models.tokens()
    model, optimizer = models.started(make, models.conformance_step, *data)
    tracking = track(model, optimizer)
    for _ in range(3 if dim == 128 else 1):
        tracking.kind.track_inputs(data)
        capture = tracking.step(models.conformance_step, model, optimizer, *data)
        log = reduction.Log(capture)
        assert log.peak() == peak
        assert capture.meta["inputs"] == "given"
    theirs = oracle.fsdp_tracker(model, optimizer, data)
    with theirs:
        models.conformance_step(model, optimizer, *data)
    assert reduction.our_peak(capture, fsdp=True) == oracle.peak_snapshot(theirs)
    if dim == 128:
        held = log.peak_snapshot()["cpu"]
        assert sum(p.numel() for p in model.parameters()) == 667_136
        assert held["sharded_param"] == 1_334_272
        assert held["optimizer"] == 2_668_660


@pytest.mark.usefixtures("fake_world")
def test_list_groups_are_counted_once_and_later_steps_train(track):
    x = models.tokens()
    model, optimizer = models.started(list_groups, models.train_step, x)
    hooks = models.hooks_of(model)
    group = model.norm._get_fsdp_state()._fsdp_param_groups[0]
    attributes = set(vars(group))
    capture = track(model, optimizer).step(models.train_step, model, optimizer, x)
    assert models.hooks_of(model) == hooks
    assert set(vars(group)) == attributes
    for _ in range(4):
        models.train_step(model, optimizer, x)

    found = reduction.ours(capture, fsdp=True)
    whole = models.Transformer()
    tail = models.param_bytes(whole.norm, whole.out)
    layer = models.param_bytes(models.Block())
    for name in ("FSDPTransformer.norm", "FSDPTransformer.out"):
        # One backward of the group, not one per module and module.
        (before,) = found[name, "Before Post-Backward"]
        (after,) = found[name, "After Post-Backward"]
        assert before["cpu"]["Unsharded Grad"] == tail
        assert "Unsharded Grad" not in after["cpu"]
        assert after["cpu"]["Reduce Scatter"] == tail
        assert after["cpu"]["Sharded Grad"] == tail // 2
    (first,) = found["FSDPTransformer.layers.1", "After Post-Backward"]
    assert first["cpu"]["Sharded Grad"] == (tail + layer) // 2
    (last,) = found["FSDPTransformer", "After Post-Backward"]
    total = models.param_bytes(models.Transformer())
    assert last["cpu"]["Sharded Grad"] == last["cpu"]["Sharded Param"] == total // 2


def accumulating_step(model, optimizer, x, between=lambda: None):
    """A step of two batches, of which the second one's backward reduces."""
    model.set_requires_gradient_sync(False)
    models.functional.cross_entropy(model(x).flatten(0, 1), x.flatten()).backward()
    between()
    model.set_requires_gradient_sync(True)
    models.train_step(model, optimizer, x)


@pytest.mark.usefixtures("fake_world")
def test_gradient_accumulation_keeps_whole_gradients_between_backwards(track):
    step, x = accumulating_step, models.tokens()
    model, optimizer = models.started(sharded, step, x)
    theirs = oracle.fsdp_tracker(model, optimizer, (x,))
    with theirs:
        step(model, optimizer, x, theirs.reset_mod_stats)
    capture = track(model, optimizer).step(step, model, optimizer, x)
    found = reduction.ours(capture, fsdp=True)
    for key, (call,) in without_their_own(oracle.states(theirs), model).items():
        assert found[key][1] == call, key  # they know the last forward and backward
    (before, after) = found["FSDPTransformer", "After Post-Backward"]
    total = models.param_bytes(models.Transformer())
    assert before["cpu"]["Unsharded Grad"] == total
    assert "Sharded Grad" not in before["cpu"]
    assert after["cpu"]["Sharded Grad"] == total // 2
    assert reduction.our_peak(capture, fsdp=True) == oracle.peak_snapshot(theirs)


@pytest.mark.usefixtures("fake_world")
def test_accumulation_in_another_type_is_a_gradient_too(track):
    # Theirs calls what `to_accumulated_grad_if_needed` makes Temp.
    step, x = accumulating_step, models.tokens()
    model, optimizer = models.started(mixed, step, x)
    capture = track(model, optimizer).step(step, model, optimizer, x)
    found = reduction.ours(capture, fsdp=True)
    total = models.param_bytes(models.Transformer())
    kept = found["FSDPTransformer", "After Post-Backward"][0]["cpu"]["Unsharded Grad"]
    assert kept == total  # float32, as they are reduced


@pytest.mark.usefixtures("fake_world_of_4")
def test_several_groups_per_module(track):
    shard = pytest.importorskip("torch.distributed.fsdp._fully_shard._fsdp_common")
    if not hasattr(shard, "ShardPlacementResult"):
        pytest.skip("torch before 2.12 has one group per module")
    from torch.distributed.tensor import Shard

    def make():
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
        model = models.Transformer()
        infos = [
            shard.FSDPMeshInfo(mesh=mesh[name], shard_mesh_dim=0) for name in ("a", "b")
        ]
        for layer in model.layers:
            fast = set(layer.mlp.parameters())
            fully_shard(
                layer,
                mesh=mesh["a"],
                shard_placement_fn=lambda p, fast=fast: shard.ShardPlacementResult(
                    placement=Shard(0), mesh_info=infos[p in fast]
                ),
            )
        return fully_shard(model, mesh=mesh["a"])

    x = models.tokens()
    model, optimizer = models.started(make, models.train_step, x)
    assert len(model.layers[0]._get_fsdp_state()._fsdp_param_groups) == 2
    hooks = models.hooks_of(model)
    capture = track(model, optimizer).step(models.train_step, model, optimizer, x)
    assert models.hooks_of(model) == hooks
    found = reduction.ours(capture, fsdp=True)
    layer = models.param_bytes(models.Block())
    for number, name in ((0, "layers.1"), (1, "layers.0")):
        fqn = f"FSDPTransformer.{name}"
        for state in ("Pre-Backward", "Post-Backward"):
            assert len(found[fqn, f"Before {state}"]) == 1
            assert len(found[fqn, f"After {state}"]) == 1
        (after,) = found[fqn, "After Post-Backward"]
        assert after["cpu"]["Sharded Grad"] == (number + 1) * layer // 2
        assert "Unsharded Grad" not in after["cpu"]


@pytest.mark.usefixtures("fake_world")
def test_a_sharded_part_of_a_model_can_be_the_root(track):
    x = models.tokens()
    model, optimizer = models.started(sharded, models.train_step, x)
    tracking = track(model, optimizer, root="layers.1")
    capture = tracking.step(models.train_step, model, optimizer, x)
    log = reduction.Log(capture)
    log.check()
    assert capture.meta["root"] == "FSDPBlock"
    assert log.modules["path"][0] == ""
    layer = models.param_bytes(models.Block())
    first = log.balances[log.events["time_us"].tolist().count(0)]["cpu"]
    assert first["sharded_param"] == layer // 2


@pytest.mark.usefixtures("fake_world")
def test_own_bytes_are_the_local_shards(track):
    x = models.tokens()
    model, optimizer = models.started(sharded, models.train_step, x)
    capture = track(model, optimizer).step(models.train_step, model, optimizer, x)
    shards = reduction.bytes_by_owner(capture, "sharded_param", at_start=True)
    assert shards == capture.tables["modules"]["param_bytes"].tolist()
    assert sum(shards) == models.param_bytes(models.Transformer()) // 2
    # Adam's two, and a count of 4 bytes for each parameter.
    states = reduction.bytes_by_owner(capture, "optimizer", at_start=True)
    counts = [4 * len(list(m.parameters(recurse=False))) for m in model.modules()]
    expected = [2 * s + c for s, c in zip(shards, counts, strict=True)]
    assert states == expected


@pytest.mark.usefixtures("fake_world")
def test_an_exception_in_a_forward_leaves_fsdp_working(track):
    x = models.tokens()
    model, optimizer = models.started(list_groups, models.train_step, x)
    hooks = models.hooks_of(model)

    class StopError(Exception):
        pass

    def fail(*_):
        raise StopError

    tracking = track(model, optimizer)
    handle = model.layers[1].mlp.register_forward_pre_hook(fail)
    with pytest.raises(StopError):
        tracking.step(models.train_step, model, optimizer, x)
    handle.remove()
    assert tracking.sink.captures[-1].meta["incomplete"]
    assert models.hooks_of(model) == hooks
