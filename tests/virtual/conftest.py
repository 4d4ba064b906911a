"""A fixture that runs short programs on virtual GPUs."""

from __future__ import annotations

import pytest

from tests.virtual.running import python
from tests.virtual.snippets import Snippets


@pytest.fixture(scope="session")
def on_gpu(tmp_path_factory):
    """Runs short programs on virtual GPUs; skips without a CUDA build of torch."""
    python()
    return Snippets(tmp_path_factory.mktemp("books"))
