"""Stand-ins around the kinds: a sink that keeps what they find, windows, one kind."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memboard.collector.config.schedule import Cycles, Schedule
from memboard.collector.config.sections import ActivationsConfig
from memboard.collector.core.calls import Call, Gate
from memboard.collector.core.source import SourceInfo
from memboard.collector.core.warn_once import WarnOnce
from memboard.collector.functions.activations import ActivationsKind
from memboard.collector.functions.kinds import Slot
from memboard.collector.functions.module_watch import ModuleWatch
from memboard.collector.functions.windows import Windows
from memboard.collector.steps.positions import Positions
from memboard.collector.steps.progress import Progress

if TYPE_CHECKING:
    from memboard.collector.format.records import Capture


@dataclass
class KeptSink:
    """See `contract.Sink`."""

    captures: list[Capture] = field(default_factory=list)
    rows: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    notes: list[tuple[str, str, str, str]] = field(default_factory=list)
    columns: dict[str, Any] = field(default_factory=dict)
    rank: int = 0

    def put_capture(self, capture):
        self.captures.append(capture)
        return True

    def put_row(self, table, phase, columns, row, *, rolled_up=True):
        assert len(columns) == len(row)
        names = [column.name for column in columns]
        assert names[:2] == ["time_ns", "step"]
        assert len(set(names)) == len(names)
        self.rows.append((table, phase, dict(zip(names, row, strict=True))))
        self.columns[table] = columns, rolled_up

    def put_later(self, size_bytes, write, *findings):
        self.put_all_later([(size_bytes, write, findings)])

    def put_all_later(self, findings):
        for _, write, found in findings:
            write(self, *found)

    def note_kind(self, info, status, reason, remedy):
        self.notes.append((info.name, status, reason, remedy))

    def artifact_dir(self):
        return None

    def mirror(self, kind, path):
        raise AssertionError("no file was written")

    def status(self, name):
        """The last word on a kind."""
        return [note[1] for note in self.notes if note[0] == name][-1]


def call(function="f", iteration=1, phase="train", step=0):
    return Call(function=function, phase=phase, iteration=iteration, step=step)


class Counting:
    """An activations kind on a model."""

    def __init__(self, model=None, **settings):
        self.sink = KeptSink()
        self.kind = ActivationsKind(
            ActivationsConfig(**settings), self.sink, ModuleWatch()
        )
        if model is not None:
            self.kind.attach(model, ())

    def __call__(self, function):
        """Run it as a collected call, and let go; returns its capture."""
        try:
            with self.call():
                function()
        finally:
            self.kind.release()
        return self.sink.captures[-1]

    @contextmanager
    def call(self, name="f", iteration=1):
        """A collected call; what it has saved is in `saved` when it is over."""
        this = call(name, iteration)
        self.kind.begin(this)
        try:
            yield
        finally:
            self.kind.end(this, None)

    @property
    def saved(self):
        """Bytes of each call that is over, in their order."""
        return [(one.function, one.meta["bytes"]) for one in self.sink.captures]


def rows(capture, *columns):
    """The table of a capture by module path and dtype."""
    saved, modules = capture.tables["saved"], capture.tables["modules"]
    paths = ["outside" if m < 0 else modules["path"][m] for m in saved["module"]]
    keys = zip(paths, saved["dtype"], strict=True)
    values = zip(*(saved[name].tolist() for name in columns), strict=True)
    return dict(zip(keys, values, strict=True))


class Kind:
    """Remembers what it is asked; may be told to raise."""

    def __init__(self, name, log):
        self.name = name
        self.info = SourceInfo(name=name, cost="")
        self.log = log
        self.raises = {}
        self.held = False

    def _do(self, what, *details):
        self.log.append((self.name, what, *details))
        if what in self.raises:
            raise self.raises[what]

    def begin(self, call):
        self.held = True
        self._do("begin", f"{call.function}.{call.iteration}", call.phase)

    def end(self, call, error):
        self._do("end", f"{call.function}.{call.iteration}", error)

    def attach(self, model, optimizers):
        self._do("attach", model, tuple(optimizers))

    def release(self):
        self.held = False
        self._do("release")

    def close(self):
        self.held = False
        self._do("close")


class Setup:
    """Windows over two kinds that remember."""

    def __init__(
        self,
        pattern=None,
        unit="call",
        functions=(("*",), ("*",)),
        *,
        per_epoch=False,
        resume=0,
    ):
        self.log = []
        self.sink = KeptSink()
        self.gate = Gate(self.sink)
        self.kinds = [Kind(name, self.log) for name in ("first", "second")]
        self.opened = []
        warn_once = WarnOnce()
        self.slots = [
            Slot(kind.name, names, self.opener(kind), self.gate, warn_once)
            for kind, names in zip(self.kinds, functions, strict=True)
        ]
        self.progress = Progress()
        positions = Positions(
            Schedule(pattern or Cycles(active=1), resume=resume),
            self.progress,
            warn_once,
            unit=unit,
            per_epoch=per_epoch,
        )
        self.windows = Windows(
            positions=positions,
            slots=self.slots,
            gate=self.gate,
            progress=self.progress,
        )

    def opener(self, kind):
        def open_kind():
            self.opened.append(kind.name)
            if "open" in kind.raises:
                raise kind.raises["open"]
            return kind

        return open_kind

    def call(self, function, error=None, inside=lambda: None):
        under_way = self.windows.begin(function)
        inside()
        if under_way is not None:
            self.windows.end(under_way, error)
        return under_way is not None

    def step(self, error=None):
        """What `rec.step()` does."""
        self.windows.end_step()
        self.progress.advance(None)
        self.windows.begin_step()

    def enter(self, phase):
        """What `rec.phase()` does."""
        self.windows.drop_step()
        self.progress.enter(phase, 0)
        self.windows.begin_step()

    def begun(self, kind="first"):
        return [e[2] for e in self.log if e[:2] == (kind, "begin")]

    def did(self, what, kind="first"):
        return [e for e in self.log if e[:2] == (kind, what)]
