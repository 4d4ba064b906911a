"""Whatever a call is given: nothing escapes into training, and recording goes on.

The calls are found by looking, so that a new one is tried too.
"""

from __future__ import annotations

import array
import collections
import enum
import functools
import inspect
import itertools
import logging
import warnings
from collections.abc import Mapping
from typing import is_typeddict

import pytest
import torch

import memboard as mb
from memboard.collector.core import model_parts
from memboard.collector.core.warn_once import WarnOnce
from memboard.collector.steps.progress import PhaseBlock
from memboard.collector.steps.spans.calls import MAX_NUMBERS
from memboard.collector.steps.spans.span import Span, warn_once
from tests.collector.recordings import read_only_file
from tests.collector.steps.test_span_log import ALWAYS, record

SPECIAL = (
    "str",
    "repr",
    "format",
    "hash",
    "eq",
    "ne",
    "lt",
    "bool",
    "len",
    "iter",
    "next",
    "int",
    "index",
    "float",
    "floor",
    "call",
    "getitem",
    "contains",
    "fspath",
    "enter",
    "exit",
    "getattr",
    "setattr",
    "delattr",
    "instancecheck",
    "reduce_ex",
    "set_name",
    "get",
    "sizeof",
    "dir",
    "add",
    "radd",
    "abs",
    "array",
)


class HostileError(Exception):
    """What hostile objects raise; its own text cannot be had either."""

    def __str__(self):
        raise ValueError("no text")

    __repr__ = __str__


class HostilePanic(BaseException):
    """As Rust's `PanicException`, which is no `Exception` either."""

    def __str__(self):
        raise HostilePanic

    __repr__ = __str__


raised = HostileError


@pytest.fixture(params=[HostileError, HostilePanic])
def _raised(request, monkeypatch):
    """What hostile objects raise in this test."""
    monkeypatch.setitem(globals(), "raised", request.param)


def refuse(*_args, **_kwargs):
    raise raised


def hostile(base, keep=()):
    """A class each of whose methods raises, but those to keep; `__class__` too."""
    methods = {f"__{name}__": refuse for name in SPECIAL}
    methods["__class__"] = property(refuse)
    kept = {f"__{name}__" for name in keep}
    return type("Hostile", (base,), {n: m for n, m in methods.items() if n not in kept})


class HostileMeta(type):
    def __getattribute__(cls, name):
        raise raised

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
    except mb.MemBoardError:
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
    for name in dir(mb.Recorder)
    if not name.startswith("_")
    and callable(inspect.getattr_static(mb.Recorder, name))
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


@pytest.mark.usefixtures("_quiet", "_raised")
@pytest.mark.parametrize("name", RECORDER)
def test_no_call_of_a_recorder_lets_anything_escape(tmp_path, name):
    rec = record(tmp_path / "run", schedule=ALWAYS)
    function = getattr(rec, name)
    for args, kwargs in attempts(function):
        call(function, *args, **kwargs)
    check_after(tmp_path / "run", rec)


@pytest.mark.usefixtures("_quiet", "_raised")
@pytest.mark.parametrize("name", sorted(mb.__all__))
def test_no_public_name_lets_anything_escape(tmp_path, monkeypatch, name):
    what = getattr(mb, name)
    if inspect.isclass(what) and issubclass(what, (BaseException, enum.Enum)):
        return
    if what is mb.Recorder:  # made by `record`, which is tried
        return
    if is_typeddict(what) or what is mb.load:
        return  # a type and no more; what reads settings before there is training
    rec = record(tmp_path / "run", schedule=ALWAYS)
    monkeypatch.chdir(tmp_path)  # for relative paths that can be meant
    for args, kwargs in attempts(what):
        made = call(what, *args, **kwargs)
        if type(made) is mb.Recorder and made is not rec:
            made.step()
            made.close()
    check_after(tmp_path / "run", rec)


@pytest.mark.usefixtures("_quiet", "_raised")
def test_no_setting_lets_anything_escape(tmp_path):
    for field in mb.RecordConfig.__struct_fields__:
        for odd in objects():
            call(mb.RecordConfig, **{field: odd})
            settings = {"enabled": False, field: odd}
            made = call(mb.record, tmp_path / field, **settings)
            if made is not None:
                made.close()
        assert field == "enabled" or not (tmp_path / field).exists()


@pytest.mark.usefixtures("_quiet", "_raised")
def test_what_calls_return_lets_nothing_escape(tmp_path):
    rec = record(tmp_path / "run", schedule=ALWAYS)
    for make in (
        rec.span,
        mb.span,
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
            made.__exit__(raised, raised(), None)
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


@pytest.mark.parametrize("kind", [HostileError, HostilePanic])
def test_an_exception_without_a_text_still_ends_the_file(tmp_path, kind):
    rec = record(tmp_path / "run")
    rec.step()
    rec.__exit__(kind, kind(), None)
    close = read_only_file(tmp_path / "run").close
    assert (close.how, close.message) == ("exception", kind.__name__)


class Endless(Mapping):
    """Has no end; says how much of it was read."""

    def __init__(self, value):
        self.value, self.num_read = value, 0

    def __getitem__(self, key):
        return self.value

    def __iter__(self):
        for number in itertools.count():
            self.num_read += 1
            yield f"key {number}"

    def __len__(self):
        return 1 << 60


class EndlessModule(torch.nn.Module):
    def parameters(self, recurse=True):
        return itertools.repeat(torch.nn.Parameter(torch.ones(1)))


class EndlessTree(torch.nn.Module):
    """Lists the same modules again and again."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(2, 2)
        self.num_listed = 0

    def forward(self, inputs):
        return self.inner(inputs)

    def _listed(self, entry):
        while True:
            self.num_listed += 1
            yield entry(self.num_listed)

    def modules(self):
        return self._listed(lambda at: self.inner if at % 2 else self)

    def named_modules(self, *_args, **_keywords):
        return self._listed(
            lambda at: (f"inner{at}", self.inner) if at % 2 else ("", self)
        )

    def named_parameters(self, *_args, **_keywords):
        return self._listed(lambda at: (f"weight{at}", self.inner.weight))

    named_buffers = named_parameters

    def parameters(self, recurse=True):
        return self._listed(lambda _: self.inner.weight)


class Anything:
    """Answers to every name, and has no end."""

    def __getattr__(self, name):
        return self

    def __call__(self, *args, **keywords):
        return self

    def __iter__(self):
        return itertools.repeat(self)


class Counted(list):
    """A list that must not be walked whole."""

    def __iter__(self):
        return itertools.repeat(0)

    def __repr__(self):
        raise AssertionError


LARGE = (
    Counted([0] * 100),
    collections.OrderedDict.fromkeys(range(100)),
    collections.deque(range(100)),
    array.array("d", range(100)),
    bytes(100),
    10**4000,
)


@pytest.mark.usefixtures("_quiet")
def test_what_has_no_end_is_read_for_a_while(tmp_path):
    given = []

    def endless(value=1.0):
        given.append(Endless(value))
        return given[-1]

    rec = record(tmp_path / "run", schedule=ALWAYS)
    rec.log(endless())
    rec.log(endless(torch.ones(2)))
    rec.attach(mesh=endless(1))
    rec.instant("now", value=endless())
    rec.mark([endless()])
    rec.track_inputs(endless(endless()))
    rec.track_inputs([[1, 2]] * 200_000)
    rec.attach(model=EndlessModule())
    rec.attach(optimizer=[object()] * 1000)
    rec.log({"x": 1}, states=itertools.repeat("active"))
    with rec.span("a", args=endless(), states=itertools.repeat("active")):
        pass
    with pytest.raises(mb.ConfigError, match="more than"):
        record(tmp_path / "other", mesh=endless(1))
    with pytest.raises(mb.ConfigError, match="more than"):
        record(tmp_path / "other", config=endless(1))
    with pytest.raises(mb.ConfigError):
        record(tmp_path / "other", remote={"options": endless(1)})
    assert max(one.num_read for one in given) <= 200_000
    assert given[0].num_read <= MAX_NUMBERS + 1
    check_after(tmp_path / "run", rec)


@pytest.mark.usefixtures("_quiet")
@pytest.mark.parametrize("where", ["record", "attach"])
def test_of_a_model_without_end_a_beginning_is_read(
    tmp_path, caplog, monkeypatch, where
):
    monkeypatch.setattr(model_parts, "MAX_PARTS", 1000)
    monkeypatch.setattr(model_parts, "_warn_once", WarnOnce())
    model = EndlessTree()
    kinds = dict.fromkeys(("functions", "hooks", "modules", "history"), True)
    given = {"model": model} if where == "record" else {}
    rec = record(tmp_path / "run", schedule=ALWAYS, **kinds, **given)
    rec.attach(model=model)
    for _ in range(3):
        model(torch.ones(1, 2)).sum().backward()
        rec.step()
    assert model.num_listed <= 1001 * 40
    found = [
        line for line in caplog.messages if "entries; the rest is left out" in line
    ]
    assert len(found) == len(set(found))
    assert "named_modules of <EndlessTree> lists more than 1000 entries" in caplog.text
    check_after(tmp_path / "run", rec)


@pytest.mark.usefixtures("_quiet")
def test_what_answers_to_every_name_is_no_model(tmp_path, monkeypatch):
    monkeypatch.setattr(model_parts, "MAX_PARTS", 1000)
    rec = record(tmp_path / "run", schedule=ALWAYS, hooks=True, modules=True)
    rec.attach(model=Anything(), optimizer=Anything())
    rec.step()
    rec.step()
    check_after(tmp_path / "run", rec)


@pytest.mark.usefixtures("_quiet")
def test_of_what_is_large_a_beginning_is_read(tmp_path, caplog):
    rec = record(tmp_path / "run", schedule=ALWAYS)
    for odd in LARGE:
        rec.mark(odd)
        with rec.span("x", category=odd):
            pass
    rec.log({f"key {number}": 1.0 for number in range(2 * MAX_NUMBERS)})
    rec.mark([Counted()] * 1000)
    assert "takes 1000 numbers at once" in caplog.text
    rec.flush(60)
    labels = [n["label"] for n in read_only_file(tmp_path / "run").notes_of("mark")]
    assert labels[: len(LARGE)] == [f"<{type(odd).__name__}>" for odd in LARGE]
    assert labels[-1].count("<Counted>") <= 32
    check_after(tmp_path / "run", rec)


class RaisingMapping(Mapping):
    """Settings of the user's own class, which raises when it is read."""

    def __init__(self, error):
        self.error = error

    def __getitem__(self, key):
        raise self.error

    def __iter__(self):
        raise self.error

    def __len__(self):
        raise self.error


@pytest.mark.parametrize("error", [HostilePanic, HostileError, ValueError])
@pytest.mark.parametrize("place", ["config", "section", "option"])
def test_what_a_mapping_of_settings_raises_is_an_error_of_settings(error, place):
    odd = RaisingMapping(error())
    settings = {"section": {"cpu": odd}, "option": {"remote": {"options": odd}}}
    config = odd if place == "config" else settings[place]
    with pytest.raises(mb.ConfigError):
        mb.load(config)
    if place != "config":
        with pytest.raises(mb.ConfigError):
            mb.load(**config)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_passes_from_settings_too(error):
    with pytest.raises(error):
        mb.load(RaisingMapping(error()))


def test_a_span_of_a_closed_recorder_looks_at_nothing(tmp_path):
    rec = record(tmp_path / "run")
    rec.close()
    odd = hostile(object)()
    ran = False
    with rec.span(odd, category=odd, states=odd, args=odd, memory=odd):
        ran = True
    assert ran
    assert not read_only_file(tmp_path / "run").notes_of("span")
