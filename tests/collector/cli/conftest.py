"""Fixtures of the verbs' tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.memprofiler_files import printed_by_torch

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def torch_reports(fsdp_on_cpu, tmp_path_factory) -> tuple[Path, dict]:
    """What torch's own trackers print here, and what they held."""
    folder = tmp_path_factory.mktemp("torch")
    return folder, printed_by_torch(folder)
