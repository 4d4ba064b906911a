"""A fixture that runs short programs on virtual GPUs."""

from __future__ import annotations

import pytest

from memboard.collector.virtual.devices import parse_device
from memboard.collector.virtual.environment import environment
from tests import programs
from tests.virtual.running import python
from tests.virtual.snippets import Snippets


@pytest.fixture(scope="session")
def on_gpu(tmp_path_factory):
    """Runs short programs on virtual GPUs; skips without a CUDA build of torch."""
    python()
    return Snippets(tmp_path_factory.mktemp("accounting"))


@pytest.fixture(scope="session")
def virtual_python(tmp_path_factory):
    """A `--python` of `memboard run --on` whose process has imported torch already."""
    folder = tmp_path_factory.mktemp("python")
    variables = environment(
        parse_device("h100"), python=python(), accounting=folder / "accounting"
    )
    return programs.python_that_forks(folder / "python", variables, python())
