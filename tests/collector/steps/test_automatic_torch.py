"""Parts of steps beside torch's collectives, its profiler and its compiler."""

from __future__ import annotations

import pytest
import torch

from tests.collector.recordings import read_only_file
from tests.collector.steps.test_automatic import make_model, parts_of, train
from tests.collector.steps.test_span_log import ALWAYS, named, record, spans_of


@pytest.fixture
def group(tmp_path):
    import torch.distributed as dist

    store = dist.FileStore(str(tmp_path / "store"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield dist
    dist.destroy_process_group()


def test_collectives_and_waiting_for_them_are_communication(tmp_path, group):
    before = group.all_reduce, vars(group.Work)["wait"]
    with record(tmp_path / "run", schedule=ALWAYS) as rec:
        rec.step()
        tensor = torch.ones(4)
        group.all_reduce(tensor)
        work = group.all_reduce(tensor, async_op=True)
        work.wait()
        rec.step()
        rec.step()
    assert (group.all_reduce, vars(group.Work)["wait"]) == before
    group.all_reduce(tensor, async_op=True).wait()
    found = read_only_file(tmp_path / "run")
    first, second, third = parts_of(found)["communication"]
    assert first is None
    assert second > 0
    assert third == 0
    rows = [row for row in spans_of(found) if row["category"] == "communication"]
    assert [row["name"] for row in rows] == ["all_reduce", "all_reduce", "wait"]


def test_compiled_collectives_stay_in_their_graph(tmp_path, group):
    torch._dynamo.reset()

    @torch.compile(backend="eager", fullgraph=True)
    def doubled(tensor):
        tensor = tensor * 2
        group.all_reduce(tensor)
        return tensor

    x = torch.ones(3)
    with (
        torch._dynamo.config.patch(error_on_recompile=True),
        record(tmp_path / "run", schedule=ALWAYS) as rec,
    ):
        assert doubled(x).tolist() == doubled(x).tolist() == [2.0] * 3
        rec.step()
    torch._dynamo.reset()


def test_recording_that_begins_later_leaves_compiled_collectives_alone(tmp_path, group):
    torch._dynamo.reset()

    @torch.compile(backend="eager", fullgraph=True)
    def doubled(tensor):
        tensor = tensor * 2
        group.all_reduce(tensor)
        return tensor

    x, twice = torch.ones(3), torch.full((3,), 2.0)
    assert doubled(x).equal(twice)
    with torch._dynamo.config.patch(error_on_recompile=True):
        with record(tmp_path / "run") as rec:
            assert doubled(x).equal(twice)
            rec.step()
        assert doubled(x).equal(twice)
    torch._dynamo.reset()


# torch's profiler and compiler.


def test_while_torchs_profiler_runs_spans_are_its_own_too(tmp_path):
    model = make_model()
    with record(tmp_path / "run", model=model, schedule=ALWAYS) as rec:
        with torch.profiler.profile() as profiler, rec.span("of mine"):
            model(torch.ones(1, 16))
        with rec.span("outside"):
            pass
        rec.step()
    names = {event.key for event in profiler.key_averages()}
    assert {"of mine", "forward"} <= names
    assert "outside" not in names


def compiled_as(how, model):
    if how == "wrapped":
        return torch.compile(model, backend="eager")
    if how == "in place":
        model.compile(backend="eager")
    return model


@pytest.mark.parametrize("how", ["wrapped", "in place"])
def test_a_compiled_model_is_timed_from_outside_and_not_compiled_anew(tmp_path, how):
    torch._dynamo.reset()
    num_compiled = torch._dynamo.utils.counters["stats"]
    model = compiled_as(how, make_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))
    model(x)
    before = num_compiled["unique_graphs"]
    with (
        torch._dynamo.config.patch(error_on_recompile=True),
        record(tmp_path / "run", model=model, schedule=ALWAYS) as rec,
    ):
        train(rec, model, optimizer, [(x, y)] * 3)
    model(x)
    assert num_compiled["unique_graphs"] == before
    found = read_only_file(tmp_path / "run")
    assert len(named(found, "forward")) == 3
    assert all(seconds > 0 for seconds in parts_of(found)["forward"])
    torch._dynamo.reset()


def test_a_compiled_step_is_one_graph_with_and_without_a_recorder(tmp_path):
    """Hooks of the model and of the optimizer are traced through as through nothing."""
    torch._dynamo.reset()
    model = make_model()
    x = torch.randn(8, 16)

    @torch.compile(backend="eager", fullgraph=True)
    def loss_of(x):
        return model(x).sum()

    bare = model(x).sum()
    with record(tmp_path / "run", model=model, schedule=ALWAYS) as rec:
        for _ in range(3):
            loss = loss_of(x)
            assert loss.equal(bare)
            loss.backward()
            rec.step()
    with torch._dynamo.config.patch(error_on_recompile=True):
        assert loss_of(x).equal(bare)
    torch._dynamo.reset()


def test_a_compiled_optimizer_steps_beside_a_recorder(tmp_path):
    torch._dynamo.reset()
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @torch.compile(backend="eager")
    def step():
        optimizer.step()

    with record(tmp_path / "run", model=model, schedule=ALWAYS) as rec:
        before = [parameter.clone() for parameter in model.parameters()]
        model(torch.ones(1, 16)).sum().backward()
        step()
        rec.step()
    pairs = zip(before, model.parameters(), strict=True)
    assert any(not torch.equal(old, new) for old, new in pairs)
    torch._dynamo.reset()
