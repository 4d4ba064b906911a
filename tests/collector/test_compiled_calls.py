"""Calls inside of compiled functions: recorded where that can be, else left out."""

from __future__ import annotations

import pytest

import memboard as mb
from tests.collector.recordings import read_only_file, record


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # of torch's own look
def test_calls_inside_a_compiled_function_are_left_as_they_are(tmp_path):
    torch = pytest.importorskip("torch")
    model = torch.compile(torch.nn.Linear(2, 2), backend="eager")
    with record(tmp_path / "run", model=model) as rec:

        @torch.compile(backend="eager")
        def train(batch):
            out = model(batch)
            rec.step(tokens=2)
            return out

        for _ in range(3):
            assert train(torch.ones(1, 2)).shape == (1, 2)
    found = read_only_file(tmp_path / "run")
    assert found.steps() == [0, 1, 2]
    assert found.notes_of("model")[0] == {
        "type": "Linear",
        "num_params": 6,
        "num_trainable_params": 6,
    }


@pytest.mark.parametrize("is_on", [True, False])
def test_of_spans_and_moments_nothing_is_left_in_a_compiled_graph(tmp_path, is_on):
    torch = pytest.importorskip("torch")

    with record(tmp_path / "run", enabled=is_on) as rec:

        @mb.profiled
        def inner(batch):
            return batch * 2

        @mb.span("decorated")
        def decorated(batch):
            return batch - 1

        @torch.compile(backend="eager", fullgraph=True)
        def forward(batch):
            with mb.span("a"), rec.span("b", category="c", args={"n": 1}):
                batch = inner(batch)
            mb.instant("now", n=1)
            mb.log({"queue": 1})
            rec.instant("now")
            rec.log({"queue": 1})
            rec.mark("here")
            started = rec.span("c").start()
            batch = decorated(batch)
            started.stop()
            return batch

        assert forward(torch.ones(2)).tolist() == [1.0, 1.0]
        with rec.span("around"):
            forward(torch.ones(2))
        rec.step()
    if is_on:
        found = read_only_file(tmp_path / "run")
        assert [note["name"] for note in found.notes_of("span")] == ["around"]
        assert found.notes_of("mark") == []
