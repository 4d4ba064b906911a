"""Fixtures of the verbs' tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tb_plugin.cli import main
from tests.memprofiler_files import printed_by_torch

if TYPE_CHECKING:
    from pathlib import Path


def command(*arguments: object) -> int:
    """Runs `memboard`; its exit code, also where argparse ends it."""
    try:
        return main(list(map(str, arguments)))
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.fixture(scope="session")
def torch_reports(fsdp_on_cpu, tmp_path_factory) -> tuple[Path, dict]:
    """What torch's own trackers print here, and what they held."""
    folder = tmp_path_factory.mktemp("torch")
    return folder, printed_by_torch(folder)
