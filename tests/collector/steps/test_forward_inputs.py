"""The inputs of a model's last forward have names, and are not kept alive."""

from __future__ import annotations

import gc

import pytest

import memboard as mb
from memboard.collector.format.memory import CATEGORIES

torch = pytest.importorskip("torch")


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)

    def forward(self, x, *, batch=None):
        return self.inner(x if batch is None else batch["ids"])


@pytest.fixture
def recorded(tmp_path):
    model = Model()
    with mb.record(tmp_path, model=model, oom=False) as rec:
        yield (
            model,
            lambda: {
                storage.data_ptr(): (CATEGORIES[category], name)
                for storage, category, name in rec._session.windows.named_storages()
            },
        )


def test_positions_and_keywords_are_their_names(recorded):
    model, named = recorded
    x, ids, mask = torch.randn(4, 8), torch.randn(4, 8), torch.ones(4)
    model(x)
    assert named() == {x.data_ptr(): ("input", "input 0")}
    model(x[:2], batch={"ids": ids, "masks": [mask]})
    assert named() == {
        x.data_ptr(): ("input", "input 0"),
        ids.data_ptr(): ("input", "batch"),
        mask.data_ptr(): ("input", "batch"),
    }
    model(ids)
    assert named() == {ids.data_ptr(): ("input", "input 0")}


def test_what_is_gone_and_what_another_model_made_are_no_inputs(recorded):
    model, named = recorded
    model(torch.randn(4, 8))
    gc.collect()
    assert named() == {}
    made = torch.nn.Linear(8, 8)(torch.randn(4, 8))
    model(made)
    assert named() == {}


def test_odd_inputs_cost_nothing_but_their_names(recorded):
    model, named = recorded

    class Odd(dict):
        def values(self):
            raise ValueError("no")

    x = torch.randn(4, 8)
    model(x, batch=None)
    model(x, batch=Odd(ids=x))
    assert named() == {x.data_ptr(): ("input", "input 0")}
    model(torch.randn(4, 8), batch={"numbers": list(range(1_000_000)), "ids": x})
    assert named() == {}
