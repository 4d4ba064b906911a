"""Parts of steps, timed without a word from training; and nothing left of it."""

from __future__ import annotations

import threading
import time

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from memboard.collector.format.columns import STEP_PARTS
from memboard.collector.hooks import torch_calls
from memboard.collector.steps.automatic import prefetched
from memboard.collector.steps.parts import INDEX, StepParts
from memboard.collector.steps.timing import flops_of
from tests.collector.recordings import read_only_file, wait_until
from tests.collector.steps.test_span_log import ALWAYS, named, record, spans_of


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))


def make_loader(**keywords):
    data = TensorDataset(torch.randn(32, 16), torch.randint(0, 4, (32,)))
    return DataLoader(data, batch_size=8, **keywords)


def train(rec, model, optimizer, batches, after=None):
    for number, (x, y) in enumerate(batches):
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        if after is not None:
            after(number)
        rec.step(samples=len(x), tokens=10)


def parts_of(found, phase="train"):
    return {part: found.column(f"{part}_seconds", phase=phase) for part in STEP_PARTS}


def test_every_part_has_its_time_and_all_are_at_most_the_step(tmp_path):
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters())

    def after(number):
        if number == 1:
            torch.save(model.state_dict(), tmp_path / "model.pt")

    with record(tmp_path / "run", model=model, schedule=ALWAYS) as rec:
        train(rec, model, optimizer, make_loader(), after)
        with rec.phase("val"):
            model(torch.zeros(1, 16))
            time.sleep(0.01)
            rec.step()
        train(rec, model, optimizer, make_loader())
    found = read_only_file(tmp_path / "run")
    parts = parts_of(found)
    steps = found.column("step_time_seconds")
    for name in ("dataloader", "forward", "backward", "optimizer", "zero_grad"):
        assert all(seconds > 0 for seconds in parts[name]), name
    assert [number for number, s in enumerate(parts["checkpoint"]) if s] == [1]
    # Nobody knew of evaluations before the first one; afterwards there were none.
    assert parts["eval"] == [None] * 4 + [0] * 4
    assert parts["communication"] == [None] * 8
    for number in range(1, 8):
        total = sum(values[number] or 0 for values in parts.values())
        assert total <= steps[number] * (1 + 1e-6)
    (evaluation,), (forward,) = (parts_of(found, "val")[n] for n in ("eval", "forward"))
    (took,) = found.column("step_time_seconds", phase="val")
    assert evaluation >= 0.01
    assert 0 < forward <= took * (1 + 1e-6) - evaluation
    kept = {row["name"]: row["category"] for row in spans_of(found)}
    assert kept["val"] == "eval"
    assert {*kept.values()} == {
        "step",
        "dataloader",
        "forward",
        "backward",
        "optimizer",
        "zero_grad",
        "checkpoint",
        "eval",
    }
    totals = {note["name"] for note in found.notes_of("span")}
    assert not totals  # those are of what training names


def test_without_a_model_its_forward_is_absent_and_not_zero(tmp_path):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(tmp_path / "run") as rec:
        train(rec, model, optimizer, make_loader())
        rec.attach(model=model)
        train(rec, model, optimizer, make_loader())
    forward = parts_of(read_only_file(tmp_path / "run"))["forward"]
    assert forward[:4] == [None] * 4
    assert all(seconds > 0 for seconds in forward[4:])


def test_why_no_forward_is_seen_is_said(tmp_path):
    with record(tmp_path / "run") as rec:
        rec.step()
        rec.step()
        rec.attach(model=make_model())
        rec.step()
    found = read_only_file(tmp_path / "run")
    said = [n for n in found.notes_of("source") if n["name"] == "spans.forward"]
    assert [note["status"] for note in said] == ["absent", "recorded"]
    assert said[0]["reason"] == "no model is attached"
    assert "rec.attach(model=...)" in said[0]["remedy"]
    assert found.source("spans")["status"] == "recorded"
    with record(tmp_path / "off", spans=False):
        pass
    assert read_only_file(tmp_path / "off").source("spans")["status"] == "off"


def test_automatic_spans_can_be_switched_off(tmp_path):
    model = make_model()
    before = torch.autograd.backward
    spans = {"automatic": False}
    with record(tmp_path / "run", model=model, spans=spans, schedule=ALWAYS) as rec:
        assert torch.autograd.backward is before
        assert not model._forward_hooks
        rec.step()
        rec.step()
    found = read_only_file(tmp_path / "run")
    assert {row["name"] for row in spans_of(found)} == {"step"}
    assert "forward_seconds" not in [c.name for c in found.schemas[0].columns]


def test_forwards_of_one_model_on_several_threads_are_each_their_own(tmp_path):
    first_began, second_began, first_ended = (threading.Event() for _ in range(3))

    class Meeting(nn.Module):
        def forward(self, is_first):
            (first_began if is_first else second_began).set()
            assert (second_began if is_first else first_ended).wait(60)

    model = Meeting()

    def first():
        model(True)
        first_ended.set()

    with record(tmp_path / "run", model=model, schedule=ALWAYS) as rec:
        thread = threading.Thread(target=first, name="first out")
        thread.start()
        assert first_began.wait(60)
        model(False)
        thread.join()
        rec.step()
    found = read_only_file(tmp_path / "run")
    spans = named(found, "forward")
    assert [row["thread"] for row in spans] == ["first out", "MainThread"]


def test_errors_pass_through_and_end_what_they_leave(tmp_path):
    class Broken(nn.Module):
        def forward(self, x):
            raise KeyError("mine")

    class Refuses(torch.optim.SGD):
        def step(self, closure=None):
            raise OSError("mine too")

    model = Broken()
    optimizer = Refuses(make_model().parameters(), lr=0.1)
    with record(tmp_path / "run", model=model, schedule=ALWAYS) as rec:
        for _ in range(3):
            with pytest.raises(KeyError):
                model(1)
            with pytest.raises(OSError, match="mine too"):
                optimizer.step()
            with pytest.raises(RuntimeError, match="does not require grad"):
                torch.zeros(1).backward()
            rec.step()
    found = read_only_file(tmp_path / "run")
    assert len(named(found, "forward")) == len(named(found, "backward")) == 3
    # What a failed optimizer began ends when it begins again, and is no deeper then.
    assert {row["depth"] for row in named(found, "optimizer")} == {0}


def test_a_closure_gives_forward_and_backward_their_own_time(tmp_path):
    model = make_model()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
    x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss

    with record(tmp_path / "run", model=model, schedule=ALWAYS) as rec:
        for _ in range(2):
            optimizer.step(closure)
            rec.step()
    found = read_only_file(tmp_path / "run")
    assert {row["depth"] for row in named(found, "forward")} == {1}
    assert {row["depth"] for row in named(found, "optimizer")} == {0}
    parts = parts_of(found)
    total = sum(parts[name][1] for name in ("optimizer", "forward", "backward"))
    assert total <= found.column("step_time_seconds")[1] * (1 + 1e-6)


def test_several_models_are_all_timed(tmp_path):
    first, second = make_model(), make_model()
    with record(tmp_path / "run", model=[first, second], schedule=ALWAYS) as rec:
        first(torch.ones(1, 16))
        second(torch.ones(1, 16))
        rec.step()
    assert len(named(read_only_file(tmp_path / "run"), "forward")) == 2


class SlowBackward(torch.autograd.Function):
    """Takes 10 ms for a gradient that stays what it is."""

    @staticmethod
    def forward(_ctx, x):
        return x.clone()

    @staticmethod
    def backward(_ctx, gradient):
        time.sleep(0.01)
        return gradient


def test_two_recorders_have_the_parts_of_the_same_training(tmp_path):
    inner = make_model()
    optimizer = torch.optim.SGD(inner.parameters(), lr=0.1)
    took = []

    def model(x):
        return SlowBackward.apply(inner(x))

    def timed(batches):
        for batch in batches:
            began = time.perf_counter()
            yield batch
            took.append(time.perf_counter() - began)

    with (
        record(tmp_path / "a", model=inner) as one,
        record(tmp_path / "b", model=inner) as two,
    ):
        train(one, model, optimizer, timed(make_loader()))
        two.step()
    a, b = (parts_of(read_only_file(tmp_path / name)) for name in "ab")
    assert len(took) == len(a["backward"]) == 4
    for seconds, at_most in zip(a["backward"], took, strict=True):
        assert 0.01 <= seconds <= at_most
    assert 4 * 0.01 <= b["backward"][0] <= sum(took)


# Dataloaders.


def test_workers_and_what_they_have_ready_are_kept(tmp_path):
    class Loader(DataLoader):
        def __iter__(self):
            self.iterator = super().__iter__()
            return self.iterator

    loader = Loader(TensorDataset(torch.randn(32, 16)), batch_size=8, num_workers=2)
    with record(tmp_path / "run", schedule=ALWAYS) as rec:
        wrapped = rec.loader(loader)
        assert not isinstance(wrapped, DataLoader)
        for number, _ in enumerate(wrapped):
            if number == 0:
                wait_until(lambda: prefetched(loader.iterator)[1])
            rec.step()
    found = read_only_file(tmp_path / "run")
    rows = named(found, "dataloader")
    assert all(row["args"] == {"num_workers": 2} for row in rows)
    # One to begin, one for each batch, one that finds the end; none within another.
    assert len(rows) == 1 + 4 + 1
    assert {row["depth"] for row in rows} == {0}
    values = [
        value
        for capture in found.captures
        for value in capture.tables["counters"]["value"]
        if capture.kind == "spans"
    ]
    assert max(values) >= 1
    assert min(values) >= 0
    assert rec.num_batches == 4


def test_any_iterable_is_waited_for(tmp_path):
    def slow():
        for number in range(3):
            time.sleep(0.01)
            yield number

    with record(tmp_path / "run") as rec:
        for _ in rec.loader(slow()):
            rec.step()
    waits = parts_of(read_only_file(tmp_path / "run"))["dataloader"]
    assert all(seconds >= 0.01 for seconds in waits)


def test_a_dataloader_on_another_thread_is_no_part_of_the_step(tmp_path):
    with record(tmp_path / "run", schedule=ALWAYS) as rec:
        thread = threading.Thread(target=lambda: list(make_loader()))
        thread.start()
        thread.join()
        rec.step()
    found = read_only_file(tmp_path / "run")
    assert len(named(found, "dataloader")) == 5
    assert parts_of(found)["dataloader"] == [None]


def test_iterators_that_say_nothing_of_themselves():
    class Odd:
        _num_workers = 3

    assert prefetched(iter([])) == (None, None)
    assert prefetched(Odd()) == (3, None)
    assert prefetched(iter(make_loader())) == (0, None)


# Arithmetic.


def test_flops_are_added_up_from_what_is_known(tmp_path):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    flops = {"per_sample": 1000.0, "per_token": 7, "per_step": 0.5}
    with record(tmp_path / "run", flops=flops) as rec:
        train(rec, model, optimizer, make_loader())
        rec.step()
        with rec.phase("val"):
            rec.step(samples=1)
    found = read_only_file(tmp_path / "run")
    assert found.column("flops") == [8070.5] * 4 + [0.5]
    assert found.column("flops", phase="val") == [None]
    assert found.header.config["flops"]["per_sample"] == 1000


def test_flops_of_what_nobody_reports_are_none():
    from memboard.collector.config.sections import FlopsConfig

    assert flops_of(FlopsConfig(per_token=2), samples=3, tokens=None) is None


@given(
    st.lists(
        st.tuples(st.sampled_from(["begin", "end", "take"]), st.integers(0, 7)),
        max_size=60,
    )
)
def test_parts_never_take_more_than_the_time_that_has_passed(events):
    parts, places = StepParts(), []
    parts.take(0)
    taken = 0
    for now, (event, part) in enumerate(events, 1):
        if event == "begin":
            places.append(parts.begin(part, now))
        elif event == "end" and places:
            parts.end(places.pop(part % len(places)), now)
        elif event == "take":
            seconds = [value or 0 for value in parts.take(now)]
            assert sum(seconds) <= (now - taken) * 1e-9 * (1 + 1e-12)
            assert min(seconds) >= 0
            taken = now


def test_time_belongs_to_the_innermost_part():
    parts = StepParts()
    parts.take(0)
    outer = parts.begin(INDEX["optimizer"], 10)
    inner = parts.begin(INDEX["forward"], 30)
    parts.end(inner, 70)
    parts.end(outer, 100)
    parts.end(outer, 200)  # a second end is none
    found = dict(zip(STEP_PARTS, parts.take(1000), strict=True))
    assert found["optimizer"] == pytest.approx(50e-9)
    assert found["forward"] == pytest.approx(40e-9)
    assert found["backward"] is None


def test_a_fault_of_ours_ends_the_timing_and_nothing_else(
    tmp_path, monkeypatch, caplog
):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def broken(*_):
        raise ZeroDivisionError

    with record(tmp_path / "run", model=model, schedule=ALWAYS) as rec:
        monkeypatch.setattr(StepParts, "innermost", broken)
        train(rec, model, optimizer, make_loader())
    assert read_only_file(tmp_path / "run").steps() == [0, 1, 2, 3]
    assert "the parts of steps are not timed" in caplog.text
    assert not torch_calls._listeners
