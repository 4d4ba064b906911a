"""Sizes of batches, from their shapes alone."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from memboard.collector.integrations.batches import sizes_of


class Tensor:
    """Has a shape; whoever looks at its values fails."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape

    def item(self):
        raise AssertionError("this may wait for the device")

    __int__ = __len__ = __iter__ = tolist = item


@pytest.mark.parametrize(
    ("batch", "samples", "tokens"),
    [
        (Tensor(8, 3), 8, None),
        ([Tensor(8, 3), Tensor(8)], 8, None),
        ((Tensor(), Tensor(5)), 5, None),
        ({"x": Tensor(4, 2)}, 4, None),
        ({"input_ids": Tensor(4, 128), "labels": Tensor(4)}, 4, 512),
        ([{"input_ids": Tensor(4, 128)}, 0.5], 4, 512),
        ({"meta": "text", "inputs": {"pixels": [Tensor(6, 3, 2, 2)]}}, 6, None),
        ({"tokens": Tensor(2, 0)}, 2, 0),
        ("text", None, None),
        (None, None, None),
        ([], None, None),
        (SimpleNamespace(shape="large"), None, None),
        (SimpleNamespace(shape=(2.5, 1)), None, None),
        ([[[[[[[Tensor(3)]]]]]]], None, None),
    ],
)
def test_what_shows_and_what_does_not(batch, samples, tokens):
    assert sizes_of(batch) == (samples, tokens)


def test_a_batch_that_resists_is_let_be():
    class Odd(dict):
        def values(self):
            raise RuntimeError("not now")

    assert sizes_of(Odd(a=1)) == (None, None)


def test_torchs_own_shapes_are_understood():
    torch = pytest.importorskip("torch")
    assert sizes_of([torch.zeros(7, 2), torch.zeros(7)]).samples == 7
