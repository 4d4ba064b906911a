"""Tensors are annotated in torch's own history while they are there (torch 2.14)."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from memboard.collector.config.sections import HistoryConfig
from memboard.collector.core.calls import Call
from memboard.collector.format.memory import CATEGORIES
from memboard.collector.format.snapshots.tags import annotation_data
from memboard.collector.history.kind import History
from memboard.collector.history.recording import HistoryRecording
from tests.collector.history.fakes import FakeSink, FakeTorch

torch = pytest.importorskip("torch")


class Training:
    """A net on the CPU, with a fake allocator that tells what was annotated."""

    def __init__(self, **changed) -> None:
        self.fake = FakeTorch()
        allocator = self.fake.allocator(device_type="cpu", **changed)
        self.recording = HistoryRecording(allocator)
        settings = HistoryConfig(enabled=True)
        self.history = History(settings, FakeSink(), self.recording)
        self.net = torch.nn.Linear(4, 4)
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.history.attach(self.net, [self.optimizer])

    def backward(self) -> None:
        self.net(torch.ones(2, 4)).sum().backward()

    def step(self) -> None:
        self.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def annotated(self) -> Counter[tuple[str, str]]:
        """How often each tensor was, by category and name; forgets it."""
        told, self.fake.traces = self.fake.traces, [[]]
        texts = (e["user_metadata"] for e in told[0] if e["action"] == "annotate")
        return Counter(filter(None, map(annotation_data, texts)))


CALL = Call(function="step", phase="train", iteration=1, step=3)
OWN = {("param", "weight"), ("param", "bias")}
GRADS = {("grad", "weight.grad"), ("grad", "bias.grad")}


def test_in_a_collected_call_each_tensor_is_annotated_while_it_is_there():
    training = Training()
    training.step()
    assert not training.annotated(), "no call is collected yet"
    training.history.begin(CALL)
    training.step()
    first = training.annotated()
    assert set(first) >= OWN | GRADS | {("optimizer", "exp_avg of weight")}
    assert {first[one] for one in OWN} == {1}, "what stays is said once"
    training.step()
    second = training.annotated()
    assert set(second) == GRADS, "each step has gradients of its own"
    training.history.end(CALL, None)
    training.history.release()
    training.step()
    assert not training.annotated()
    assert training.fake.enabled is None


@pytest.mark.parametrize("set_to_none", [True, False])
def test_what_moves_within_a_window_is_annotated_where_it_is_then(set_to_none):
    training = Training()
    training.net.register_buffer("mean", torch.zeros(4))
    training.history.begin(CALL)
    training.step()
    training.annotated()
    for _ in range(3):
        training.net.mean = torch.ones(4)
        training.backward()
        training.optimizer.step()
        training.optimizer.zero_grad(set_to_none=set_to_none)
        # Perhaps at the address of the one before: an allocation of its own.
        assert set(training.annotated()) >= GRADS | {("buffer", "mean")}
    kept = training.net.weight.data
    training.net.weight.data = kept.clone()
    training.step()
    assert set(training.annotated()) >= GRADS | {("param", "weight")}
    training.step()
    assert set(training.annotated()) == GRADS
    training.history.close()


def test_a_model_that_is_attached_later_is_annotated_from_then_on():
    training = Training()
    training.history.begin(CALL)
    training.step()
    training.net = torch.nn.Sequential(training.net, torch.nn.Linear(4, 4))
    training.optimizer = torch.optim.Adam(training.net.parameters())
    training.history.attach(training.net, [training.optimizer])
    training.annotated()
    training.step()
    assert set(training.annotated()) >= {
        ("grad", "0.weight.grad"),
        ("param", "1.weight"),
        ("optimizer", "exp_avg of 1.weight"),
    }
    training.history.close()


def test_gradients_in_one_bucket_are_one_allocation():
    training = Training()
    bucket = torch.zeros(20)
    training.net.weight.grad = bucket[:16].view(4, 4)
    training.net.bias.grad = bucket[16:]
    training.history.begin(CALL)
    for number in range(3):
        training.backward()
        training.optimizer.step()
        training.optimizer.zero_grad(set_to_none=False)
        annotated = training.annotated()
        assert ("grad", "bias.grad") not in annotated
        assert not number or annotated == {("grad", "weight.grad"): 1}
    training.history.close()


def test_gradients_that_are_not_plain_memory_leave_the_others_their_names():
    training = Training()
    table = torch.nn.Embedding(4, 4, sparse=True)
    training.net.add_module("table", table)
    training.history.begin(CALL)
    for _ in range(3):
        table(torch.tensor([1])).sum().backward()
        training.step()
        table.weight.grad = None
        assert set(training.annotated()) >= GRADS
    training.history.close()


def test_saved_tensors_are_annotated_as_backward_begins():
    training = Training()
    kept = torch.ones(8, requires_grad=True) * 2
    activation = CATEGORIES.index("activation")
    saved = [(kept.untyped_storage(), activation, "saved by layer.0")]
    training.history.know_storages(lambda: iter(saved))
    training.history.begin(CALL)
    kept.sum().backward()
    assert ("activation", "saved by layer.0") in training.annotated()
    training.history.close()


def test_a_recording_of_the_programs_own_stays_as_it_is():
    training = Training()
    training.history.begin(CALL)
    training.fake.record(max_entries=50)  # the program turns on its own
    training.step()
    assert not training.annotated()
    training.history.end(CALL, None)
    training.history.close()


def test_a_torch_without_annotations_is_left_alone():
    training = Training(annotate=None)
    training.history.begin(CALL)
    training.step()
    training.history.end(CALL, None)
    training.history.close()
    assert not training.annotated()


def test_what_fails_stops_nobodys_training():
    def failing(address: int, text: str) -> None:
        raise RuntimeError("no native allocator")

    training = Training(annotate=failing)
    weight = training.net.weight.detach().clone()
    training.history.begin(CALL)
    training.step()
    training.history.end(CALL, None)
    training.history.close()
    assert not torch.equal(weight, training.net.weight), "the step was taken"
    assert not training.annotated()


def test_backwards_on_several_threads_annotate_what_one_would():
    training = Training()
    training.history.begin(CALL)
    # Only backward is torch's to lock: the optimizer's step is the main thread's.
    threads = [threading.Thread(target=training.backward) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    training.optimizer.step()
    counts = training.annotated()
    assert set(counts) >= OWN | GRADS
    assert {counts[own] for own in OWN} == {1}
    training.history.close()
