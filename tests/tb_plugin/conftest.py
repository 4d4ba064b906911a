"""Fixtures of the plugin's tests."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

import pytest
from werkzeug.serving import BaseWSGIServer

from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.worker.limits import Limits
from tests.builders import RunBuilder
from tests.examples_of_properties import load_profile

if TYPE_CHECKING:
    from pathlib import Path

load_profile()

PATIENCE_SECONDS = 300.0
_HARDLY_ANY = 0.005
"""Who gives so little means that nothing, or little at a time, is to be done."""


@pytest.fixture(autouse=True)
def _patient():
    """What a request does in its time must not depend on what else the machine does."""
    begin = Budget.__init__

    def begin_later(
        budget: Budget, seconds: float, part_of: Budget | None = None
    ) -> None:
        begin(budget, seconds + PATIENCE_SECONDS * (seconds > _HARDLY_ANY), part_of)

    limits_of = Limits.of

    def limits_of_slow_ones(*args: Any, **more: Any) -> Limits:
        limits = limits_of(*args, **more)
        return limits._replace(
            cpu_s=limits.cpu_s + int(PATIENCE_SECONDS),
            silent_s=limits.silent_s + PATIENCE_SECONDS,
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Budget, "__init__", begin_later)
        patch.setattr(Limits, "of", limits_of_slow_ones)
        # Seconds until a server sees that it is to end.
        patch.setattr(BaseWSGIServer.serve_forever, "__defaults__", (0.01,))
        for name in (
            "facts.histories.opening.PICTURE_SECONDS",
            "index.search.walk._WALK_SECONDS",
            "plugin._FIRST_LOOK_SECONDS",
            "server.read_ahead._MOST_SECONDS",
            "server.read_ahead._WALKING_SECONDS",
            "formats.traces.files.listing.LOOK_SECONDS",
            "index.search.sniffing.LOOK_SECONDS",
            "storage.content.blocks.WAIT_SECONDS",
            "facts.traces.run_traces.PICTURE_SECONDS",
        ):
            patch.setattr(f"memboard.tb_plugin.{name}", PATIENCE_SECONDS)
        yield


@pytest.fixture(scope="module", autouse=True)
def _cache_of_its_own(tmp_path_factory):
    """Nothing that other tests read before, or read at the same time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMBOARD_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def run(tmp_path: Path) -> RunBuilder:
    """An empty run `exp` in the logdir `tmp_path`."""
    return RunBuilder(tmp_path / "exp")


@pytest.fixture
def temporary(tmp_path, monkeypatch) -> Path:
    """Where temporary files go while a test runs."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder
