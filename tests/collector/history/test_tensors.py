"""Addresses by name: parameters, gradients, buffers, states, FSDP2, what others know."""

from __future__ import annotations

import gc
import weakref

import pytest

torch = pytest.importorskip("torch")

from memboard.collector.format.memory import CATEGORIES  # noqa: E402
from memboard.collector.history import tensors as module  # noqa: E402
from memboard.collector.history.tensors import TensorMap  # noqa: E402


def trained(model):
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
    return optimizer


def small():
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8))


def found_in(model, *optimizers, device_type="cpu"):
    tensors = TensorMap(device_type)
    tensors.attach(model, optimizers)
    return tensors.found()


def rows(found):
    return {
        address: (CATEGORIES[category], name, size)
        for address, size, category, name in zip(
            found.address, found.num_bytes, found.category, found.name, strict=True
        )
    }


def test_everything_a_training_holds_has_its_name():
    model = small()
    optimizer = trained(model)
    found = rows(found_in(model, optimizer))
    weight = model[0].weight
    states = optimizer.state[weight]
    assert found[weight.data_ptr()] == ("param", "0.weight", 256)
    assert found[weight.grad.data_ptr()] == ("grad", "0.weight.grad", 256)
    assert found[states["exp_avg"].data_ptr()] == (
        "optimizer",
        "exp_avg of 0.weight",
        256,
    )
    assert found[model[1].running_mean.data_ptr()] == ("buffer", "1.running_mean", 32)
    expected = {t.untyped_storage().data_ptr() for t in model.state_dict().values()}
    expected |= {p.grad.data_ptr() for p in model.parameters()}
    expected |= {t.data_ptr() for s in optimizer.state.values() for t in s.values()}
    assert set(found) == expected
    table = found_in(model, optimizer).table()
    assert len({len(column) for column in table.values()}) == 1


def test_a_storage_is_listed_once_under_the_first_name():
    model = small()
    model.tied = torch.nn.Linear(8, 8)
    model.tied.weight = model[0].weight
    names = [name for name in found_in(model).name if "weight" in name]
    assert names == ["0.weight", "1.weight"]


def test_members_have_the_names_that_torch_gives_them():
    """Shared modules and parameters, children and members that were taken away."""
    model = torch.nn.ModuleDict({"a": small(), "b": torch.nn.ModuleList([small()])})
    model["again"] = model["a"]
    model.register_parameter("own", torch.nn.Parameter(torch.ones(2)))
    model.register_parameter("none", None)
    model.register_buffer("gone", None)
    model["b"].child = None
    model["a"].tied = torch.nn.Linear(8, 8, bias=False)
    model["a"].tied.weight = model["b"][0][0].weight
    expected = [*model.named_parameters(), *model.named_buffers()]
    found = found_in(model)
    assert found.name == [name for name, _ in expected]
    assert found.address == [member.data_ptr() for _, member in expected]


def test_a_wrapper_that_names_better_has_its_names():
    class Wrapper(torch.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self._wrapped = inner

        def named_parameters(self, *args, **kwargs):
            for name, parameter in super().named_parameters(*args, **kwargs):
                yield name.removeprefix("_wrapped."), parameter

    names = found_in(Wrapper(small())).name
    assert names[:2] == ["0.weight", "0.bias"]
    assert "_wrapped.1.running_mean" in names


def test_views_of_one_storage_are_that_storage_under_the_first_name():
    flat = torch.zeros(100)
    model = torch.nn.Module()
    model.a = torch.nn.Parameter(flat[:40])
    model.b = torch.nn.Parameter(flat[40:])
    assert rows(found_in(model)) == {flat.data_ptr(): ("param", "a", 400)}


def test_sums_by_category_count_each_storage_once():
    model = small()
    found = found_in(model, trained(model))
    sums = {CATEGORIES[c]: (size, many) for c, size, many in found.sums(None)}
    num_bytes = sum(p.nbytes for p in model.parameters())
    assert sums["param"] == (num_bytes, 4)
    assert sums["grad"] == (num_bytes, 4)
    assert sums["optimizer"][0] == 2 * num_bytes + 4 * 4  # and a step count each
    assert found.sums(5) == []


def test_tensors_elsewhere_are_none_of_the_devices():
    model = small()
    assert found_in(model, trained(model), device_type="cuda").address == []


def test_nothing_attached_is_nothing_known():
    assert TensorMap("cpu").found() is None
    assert found_in(object()) is None  # no module


def test_nothing_is_kept_alive():
    model = small()
    optimizer = trained(model)
    tensors = TensorMap("cpu")
    tensors.attach(model, [optimizer])
    found = tensors.found()
    gone = weakref.ref(model[0].weight.untyped_storage()), weakref.ref(optimizer)
    del model, optimizer
    gc.collect()
    assert [ref() for ref in gone] == [None, None]
    assert len(found.address) > 0
    assert tensors.found() is None


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_odd_tensors_are_left_out_and_cost_no_other():
    model = small()
    model.register_buffer("sparse", torch.eye(3).to_sparse())
    model.register_buffer("meta", torch.empty(3, device="meta"))
    model.lazy = torch.nn.LazyLinear(3)
    model.register_buffer("last", torch.ones(3))
    names = found_in(model).name
    assert "last" in names
    assert "meta" not in names
    assert names.count("sparse") == 2  # its indices and its values


def test_a_model_that_refuses_to_be_walked_costs_only_itself():
    class Broken(torch.nn.Module):
        def named_parameters(self, *args, **kwargs):
            raise RuntimeError("no")

    model = small()
    optimizer = trained(model)
    broken = Broken()
    found = rows(found_in(broken, optimizer))
    assert {category for category, _, _ in found.values()} == {"optimizer"}
    assert {name for _, name, _ in found.values()} == {"step", "exp_avg", "exp_avg_sq"}


def test_the_number_is_bounded_and_what_is_left_out_counted(monkeypatch):
    monkeypatch.setattr(module, "MAX_TENSORS", 3)
    model = small()
    found = found_in(model)
    assert len(found.address) == 3
    assert found.num_dropped == 4


def test_what_others_know_comes_last_and_under_its_own_name():
    model = small()
    kept = torch.ones(100)
    tensors = TensorMap("cpu")
    tensors.attach(model, [])
    activation = CATEGORIES.index("activation")
    tensors.known = lambda: [
        (kept.untyped_storage(), activation, "saved by 0"),
        (model[0].weight.untyped_storage(), activation, "saved by 0"),
    ]
    found = rows(tensors.found())
    assert found[kept.data_ptr()] == ("activation", "saved by 0", 400)
    assert found[model[0].weight.data_ptr()][0] == "param"


def test_saved_tensors_and_tracked_storages_are_known_inside_a_call(tmp_path):
    import memboard as mb

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(8, 8)

        def forward(self, x):
            return torch.relu(self.inner(x))

    model = Model()
    settings = {"modules": True, "schedule": {"warmup": 0}, "oom": False}
    with mb.record(tmp_path, model=model, **settings) as rec:
        x = torch.randn(4, 8)
        out = model(x)
        known = {
            storage.data_ptr(): (CATEGORIES[category], name)
            for storage, category, name in rec._session.windows.known_storages()
        }
        assert known[out.data_ptr()][0] == "activation"
        assert known[model.inner.weight.data_ptr()] == ("param", "inner")
        rec.step()
        assert list(rec._session.windows.known_storages()) == []


def test_shards_of_fsdp2_are_their_local_bytes(fsdp_on_cpu):
    distributed = pytest.importorskip("torch.distributed")
    from torch.distributed.fsdp import fully_shard
    from torch.testing._internal.distributed.fake_pg import FakeStore

    if not distributed.is_available():
        pytest.skip("this torch has no distributed")
    distributed.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    try:
        mesh = distributed.init_device_mesh("cpu", (2,))
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
        fully_shard(model[0], mesh=mesh)
        fully_shard(model, mesh=mesh)
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
        found = rows(found_in(model, optimizer))
        weight = model[0].weight
        local = weight.to_local()
        address = local.untyped_storage().data_ptr()
        assert found[address][:2] == ("sharded_param", "0.weight")
        gradient = weight.grad.to_local().untyped_storage().data_ptr()
        assert found[gradient][0] == "sharded_grad"
        state = optimizer.state[weight]["exp_avg"].to_local()
        assert found[state.untyped_storage().data_ptr()][:2] == (
            "optimizer",
            "exp_avg of 0.weight",
        )
    finally:
        distributed.destroy_process_group()
