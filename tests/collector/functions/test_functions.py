"""`mb.profiled` and memory spans: what is decorated stays what it was."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading

import pytest

import memboard as mb
from memboard.collector.core.calls import WHOLE_STEP
from memboard.collector.functions import functions
from memboard.collector.functions.functions import name_of
from memboard.collector.process import lifecycle
from memboard.collector.steps.spans.log import SpanLog


class NoDevice:
    """Nothing knows its peaks."""

    ledger = None


class Recorder:
    """Stands for the active recorder; remembers its calls."""

    def __init__(self):
        self.events = []
        self.passing = []
        self.span_log = SpanLog(states=0, device=NoDevice(), wake=list)

    def begin_call(self, function):
        self.events.append(("begin", function))
        return function

    def end_call(self, call, error):
        self.events.append(("end", call, error))

    def open_span(self, name, how):
        self.events.append(("open", name, how.memory))
        return name

    def close_span(self, opened, error):
        self.events.append(("close", opened, error))

    def passed(self, error):
        self.passing.append(error)

    def close_for(self, error):
        lifecycle.remove(self)

    def forget(self):
        pass


@pytest.fixture(autouse=True)
def _names_are_free(monkeypatch):
    """Of two functions of one name the first has it, in whatever test it was."""
    monkeypatch.setattr(functions, "_names", {WHOLE_STEP: functions._names[WHOLE_STEP]})


@pytest.fixture
def active():
    recorder = Recorder()
    lifecycle.add(recorder)
    yield recorder
    lifecycle.remove(recorder)


def test_a_function_keeps_its_signature_its_result_and_its_name(active):
    @mb.profiled
    def add(a: int, b: int = 2) -> int:
        """Adds."""
        return a + b

    assert add(1) == 3
    assert add(1, b=5) == 6
    assert str(inspect.signature(add)) == "(a: 'int', b: 'int' = 2) -> 'int'"
    assert (add.__name__, add.__doc__) == ("add", "Adds.")
    assert active.events == [("begin", "add"), ("end", "add", None)] * 2


def test_an_error_is_passed_on_and_told(active):
    @mb.profiled
    def fail():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as raised:
        fail()
    assert active.events[-1] == ("end", "fail", raised.value)
    assert active.passing == [raised.value]


def test_names_of_ones_own(active):
    @mb.profiled("forward pass")
    def one():
        return 1

    @mb.profiled()
    def two():
        return 2

    assert (one(), two()) == (1, 2)
    assert [e[1] for e in active.events if e[0] == "begin"] == ["forward pass", "two"]


def test_methods_static_and_class_methods(active):
    class Model:
        factor = 3

        @mb.profiled
        def scaled(self, x):
            return self.factor * x

        @mb.profiled
        @staticmethod
        def plain(x):
            return x + 1

        @mb.profiled
        @classmethod
        def of_class(cls, x):
            return cls.factor + x

        @property
        @mb.profiled
        def value(self):
            return 7

    model = Model()
    assert (model.scaled(2), model.plain(1), Model.plain(1)) == (6, 2, 2)
    assert (model.of_class(1), Model.of_class(1), model.value) == (4, 4, 7)
    names = [e[1] for e in active.events if e[0] == "begin"]
    assert names == ["scaled", "plain", "plain", "of_class", "of_class", "value"]


def test_two_functions_of_one_name_are_two():
    def make(where):
        def training_step_of_test():
            pass

        training_step_of_test.__qualname__ = f"{where}.training_step_of_test"
        return training_step_of_test

    first, second = make("Generator"), make("Discriminator")
    assert name_of(first) == "training_step_of_test"
    assert name_of(second) == "Discriminator.training_step_of_test"
    # The same function, decorated anew in a notebook's cell, is the same.
    assert name_of(make("Generator")) == "training_step_of_test"

    def step():
        pass

    assert name_of(step) != "step"  # which is the whole step's


def test_a_cancelled_coroutine_ends_its_call(active):
    @mb.profiled
    async def never():
        await asyncio.sleep(60)

    async def main():
        task = asyncio.create_task(never())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    (_, (_, _, error)) = active.events
    assert isinstance(error, asyncio.CancelledError)


def test_a_generator_lasts_from_its_first_item_to_its_end(active):
    @mb.profiled
    def items(n):
        got = []
        for index in range(n):
            got.append((yield index))  # noqa: PERF401  # a comprehension may not yield
        return got

    assert inspect.isgeneratorfunction(items)
    made = items(2)
    assert active.events == []  # nothing runs before the first item
    assert (next(made), made.send("a")) == (0, 1)
    assert active.events == [("begin", "items")]
    with pytest.raises(StopIteration) as stopped:
        made.send("b")
    assert stopped.value.value == ["a", "b"]
    assert active.events == [("begin", "items"), ("end", "items", None)]


def test_a_generator_that_nobody_exhausts_ends_without_an_error(active):
    @mb.profiled
    def endless():
        while True:
            yield 1

    for item in endless():
        assert item == 1
        break
    gc.collect()
    assert active.events == [("begin", "endless"), ("end", "endless", None)]


def test_a_span_with_memory_is_a_call_and_without_it_is_none(active):
    with mb.span("eval", memory=True):
        pass
    with mb.span("only time"):
        pass

    @mb.span("decorated", memory=True)
    def decorated():
        return 1

    assert decorated() == 1
    # What there is besides time is the recorder's to open and to close.
    assert active.events == [
        ("open", "eval", True),
        ("close", "eval", None),
        ("open", "decorated", True),
        ("close", "decorated", None),
    ]
    totals = active.span_log.take_spans() and active.span_log.take_totals()
    assert [note["name"] for note in totals] == ["eval", "only time", "decorated"]


def test_without_a_live_recorder_everything_runs_straight_through():
    assert lifecycle.newest() is None

    @mb.profiled
    def plain(x):
        return x

    @mb.profiled
    async def later(x):
        return x

    @mb.profiled
    def items():
        yield 1

    @mb.profiled
    async def stream():
        yield 1

    async def main():
        return [item async for item in stream()]

    assert plain(3) == 3
    assert asyncio.run(later(4)) == 4
    assert list(items()) == [1]
    assert asyncio.run(main()) == [1]
    with pytest.raises(TypeError):
        plain()


def test_the_recorder_is_looked_up_at_each_call(active):
    @mb.profiled
    def function():
        return threading.get_ident()

    function()
    lifecycle.remove(active)
    function()
    lifecycle.add(active)
    function()
    assert len(active.events) == 4
