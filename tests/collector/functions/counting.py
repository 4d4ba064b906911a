"""Counts what a function saves for backward."""

from __future__ import annotations

from collector.config.sections import ActivationsConfig
from collector.functions.activations import ActivationsKind
from collector.functions.module_watch import ModuleWatch
from tests.collector.functions.sinks import KeptSink, call


class Counting:
    """An activations kind on a model."""

    def __init__(self, model=None, **settings):
        self.sink = KeptSink()
        self.kind = ActivationsKind(
            ActivationsConfig(**settings), self.sink, ModuleWatch()
        )
        if model is not None:
            self.kind.attach(model, ())

    def __call__(self, function, name="f"):
        """Run it as a collected call; returns its capture."""
        this = call(name)
        self.kind.begin(this)
        try:
            function()
        finally:
            self.kind.end(this, None)
            self.kind.release()
        return self.sink.captures[-1]


def rows(capture, *columns):
    """The table of a capture by module path and dtype."""
    saved, modules = capture.tables["saved"], capture.tables["modules"]
    paths = ["outside" if m < 0 else modules["path"][m] for m in saved["module"]]
    keys = zip(paths, saved["dtype"], strict=True)
    values = zip(*(saved[name].tolist() for name in columns), strict=True)
    return dict(zip(keys, values, strict=True))
