"""Whatever a call is given: nothing escapes into training, and recording goes on.

The calls are found by looking, so that a new one is tried too.
"""

from __future__ import annotations

import enum
import functools
import inspect
import logging
import warnings

import pytest
import torch

import collector
from collector.steps.progress import PhaseBlock
from collector.steps.spans.span import Span, warn_once
from tests.collector.recordings import read_only_file
from tests.collector.steps.test_span_log import ALWAYS, record

SPECIAL = (
    *("str", "repr", "format", "hash", "eq", "ne", "lt", "bool", "len", "iter", "next"),
    *("int", "index", "float", "floor", "call", "getitem", "contains", "fspath"),
    *("enter", "exit", "getattr", "setattr", "delattr", "instancecheck", "reduce_ex"),
    *("set_name", "get", "sizeof", "dir", "add", "radd", "abs", "array"),
)


class HostileError(Exception):
    """What hostile objects raise; its own text cannot be had either."""

    def __str__(self):
        raise ValueError("no text")

    __repr__ = __str__


def refuse(*_args, **_kwargs):
    raise HostileError


def hostile(base, keep=()):
    """A class each of whose methods raises, but those to keep; `__class__` too."""
    methods = {f"__{name}__": refuse for name in SPECIAL}
    methods["__class__"] = property(refuse)
    kept = {f"__{name}__" for name in keep}
    return type("Hostile", (base,), {n: m for n, m in methods.items() if n not in kept})


class HostileMeta(type):
    def __getattribute__(cls, name):
        raise HostileError

    __instancecheck__ = __subclasscheck__ = __hash__ = __eq__ = refuse


def objects():
    """What training could hand over, from plain nonsense to sheer malice."""
    yield from (None, "", "2", 5, -1, 10**5000, float("nan"), float("-inf"), 2.5, True)
    yield from (b"x", [], {}, (), {1: 2}, ["s"], {"a": {"b": object()}}, object())
    yield from (torch.ones(2), torch.ones(()), torch.ones(1, device="meta"))
    yield torch.nn.Parameter(torch.ones(1))
    yield hostile(object)()
    yield hostile(object, keep=("class", "hash", "eq", "bool"))()
    yield hostile(str)("text")
    yield hostile(int)(5)
    yield hostile(float)(5.0)
    yield hostile(dict)()
    yield hostile(list)()
    yield hostile(torch.nn.Module)
    yield HostileMeta("Meta", (), {})
    yield HostileMeta("Meta", (), {})()
    yield {"key": hostile(object)()}
    yield [hostile(object)(), hostile(str)("s")]
    yield functools.partial(refuse)
    yield lambda: None


def public_calls(owner):
    """Names of what can be called on it, itself with the rest."""
    names = {name for name in dir(type(owner)) if not name.startswith("_")}
    return sorted(names | {"__enter__", "__call__"} & set(dir(type(owner))))


def call(function, *args, **kwargs):
    """Call it; what comes back is used as training would."""
    try:
        result = function(*args, **kwargs)
    except collector.MemBoardError:
        return None
    if type(result) is Span or type(result) is PhaseBlock:
        with result:
            pass
    return result


one_place = inspect.Parameter.POSITIONAL_ONLY


def attempts(function):
    """Arguments for every parameter in turn, the others plain."""
    parameters = inspect.signature(function).parameters.values()
    by_place = {inspect.Parameter.POSITIONAL_OR_KEYWORD, one_place}
    plain = {
        one.name: "plain"
        for one in parameters
        if one.kind is one_place or (one.default is one.empty and one.kind in by_place)
    }
    for one in parameters:
        for odd in objects():
            if one.kind is one.VAR_POSITIONAL:
                yield (odd,), {}
            elif one.kind is one.VAR_KEYWORD:
                yield tuple(plain.values()), {"odd": odd}
            elif one.name in plain:
                yield tuple((plain | {one.name: odd}).values()), {}
            else:
                yield tuple(plain.values()), {one.name: odd}
    if not parameters:
        yield (), {}


@pytest.fixture
def _quiet(monkeypatch):
    """Faults are told once per process: here, once per test."""
    monkeypatch.setattr(warn_once, "_told", {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


ENDS = {"close", "close_for", "end_by", "forget"}
"""What ends a recording; nothing comes after."""

RECORDER = [
    name
    for name in dir(collector.Recorder)
    if not name.startswith("_")
    and callable(inspect.getattr_static(collector.Recorder, name))
    and name not in ENDS
]


def check_after(run_dir, rec):
    """Good calls after all that are recorded, and the file is whole."""
    with rec.phase("after"):
        with rec.span("after"):
            rec.step(7, samples=1)
        rec.mark("after")
    assert rec.flush(60)
    rec.close()
    found = read_only_file(run_dir)
    assert found.damages == []
    assert found.steps("after") == [7]
    assert {"label": "after"} in found.notes_of("mark")
    assert "after" in {note["name"] for note in found.notes_of("span")}
    assert found.close.how == "closed"


@pytest.mark.usefixtures("_quiet")
@pytest.mark.parametrize("name", RECORDER)
def test_no_call_of_a_recorder_lets_anything_escape(tmp_path, name):
    rec = record(tmp_path / "run", schedule=ALWAYS)
    function = getattr(rec, name)
    for args, kwargs in attempts(function):
        call(function, *args, **kwargs)
    check_after(tmp_path / "run", rec)


@pytest.mark.usefixtures("_quiet")
@pytest.mark.parametrize("name", sorted(collector.__all__))
def test_no_public_name_lets_anything_escape(tmp_path, monkeypatch, name):
    what = getattr(collector, name)
    if inspect.isclass(what) and issubclass(what, (BaseException, enum.Enum)):
        return
    if what is collector.Recorder:  # made by `record`, which is tried
        return
    if what in (collector.RecordOptions, collector.load):
        return  # a type and no more; what reads settings before there is training
    rec = record(tmp_path / "run", schedule=ALWAYS)
    monkeypatch.chdir(tmp_path)  # for relative paths that can be meant
    for args, kwargs in attempts(what):
        made = call(what, *args, **kwargs)
        if type(made) is collector.Recorder and made is not rec:
            made.step()
            made.close()
    check_after(tmp_path / "run", rec)


@pytest.mark.usefixtures("_quiet")
def test_no_setting_lets_anything_escape(tmp_path):
    for field in collector.RecordConfig.__struct_fields__:
        for odd in objects():
            call(collector.RecordConfig, **{field: odd})
            settings = {"enabled": False, field: odd}
            made = call(collector.record, tmp_path / field, **settings)
            if made is not None:
                made.close()
        assert field == "enabled" or not (tmp_path / field).exists()


@pytest.mark.usefixtures("_quiet")
def test_what_calls_return_lets_nothing_escape(tmp_path):
    rec = record(tmp_path / "run", schedule=ALWAYS)
    for make in (
        rec.span,
        collector.span,
        lambda odd: rec.span("x", category=odd, states=odd, args=odd, memory=odd),
        rec.phase,
    ):
        for odd in objects():
            made = make(odd)
            for name in public_calls(made):
                value = getattr(made, name)
                if not callable(value) or name == "end":
                    continue  # `end` is given what `begin` returned
                for args, kwargs in attempts(value):
                    call(value, *args, **kwargs)
            made.__exit__(HostileError, HostileError(), None)
    check_after(tmp_path / "run", rec)


def test_what_is_refused_is_told_once_with_what_to_do(tmp_path, caplog):
    odd = hostile(object)()
    with (
        caplog.at_level(logging.WARNING),
        record(tmp_path / "run", schedule=ALWAYS) as rec,
    ):
        for _ in range(3):
            rec.mark(odd)
            rec.mark(torch.ones(2, 3))
            assert rec.flush(None)
            assert rec.flush("2")
            rec.step(odd)
    told = [r.getMessage() for r in caplog.records if r.name == "memboard"]
    assert len(told) == 3, told
    assert all("Pass a" in words for words in told)
    found = read_only_file(tmp_path / "run")
    labels = [note["label"] for note in found.notes_of("mark")]
    assert labels == ["<Hostile>", "<Tensor on cpu, shape (2, 3)>"] * 3
    assert found.steps() == [0, 1, 2]


class Unreadable(torch.Tensor):
    """Stands for a tensor on a device: to read it would be to wait."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        assert name in ("__get__", "size"), f"{name} was asked of a tensor"
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **(kwargs or {}))


def test_no_value_of_a_tensor_is_read(tmp_path):
    tensor = torch.ones(2).as_subclass(Unreadable)
    with record(tmp_path / "run", schedule=ALWAYS) as rec:
        rec.mark(tensor)
        rec.mark([tensor])
        rec.step(tensor, tokens=tensor)
        rec.log({"x": tensor})
        rec.instant(tensor, loss=tensor)
        rec.epoch(tensor)
        rec.flush(tensor)
        with rec.span(tensor, category=tensor, args={"t": tensor}), rec.phase(tensor):
            rec.step()
    found = read_only_file(tmp_path / "run")
    assert found.steps() == [0]
    told = "<Unreadable on cpu, shape (2,)>"
    marks = [note["label"] for note in found.notes_of("mark")]
    assert marks == [told, f"['{told}']"]
    assert found.steps(told) == [0]


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_a_program_passes(tmp_path, end):
    class Ends:
        def __str__(self):
            raise end

    with record(tmp_path / "run") as rec:
        with pytest.raises(end):
            rec.mark(Ends())
        rec.step()
    assert read_only_file(tmp_path / "run").steps() == [0]


def test_an_exception_without_a_text_still_ends_the_file(tmp_path):
    rec = record(tmp_path / "run")
    rec.step()
    rec.__exit__(HostileError, HostileError(), None)
    close = read_only_file(tmp_path / "run").close
    assert (close.how, close.message) == ("exception", "HostileError")
