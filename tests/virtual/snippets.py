"""Short programs on virtual GPUs: one process imports torch, each program is its fork."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from memboard.collector.virtual.devices import parse_device
from memboard.collector.virtual.environment import environment
from tests import programs
from tests.virtual.running import ROOT, python

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """
import json, os, warnings
import torch, torch.distributed
import torch.nn.functional as F
warnings.simplefilter("ignore")
out = {}
"""
TAIL = """
print("\\n" + json.dumps(out), flush=True)
os._exit(0)
"""


class Snippets:
    """Runs code with `torch`, `F` and `out`, a dict of what it wants to say."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(
        self, code: str, device: str = "h100", **options: Any
    ) -> dict[str, Any]:
        """What it said; `variables` are of its environment, others as `environment` has."""
        variables = options.pop("variables", {})
        options.setdefault("accounting", self.new_accounting())
        whole = environment(parse_device(device), python=python(), **options)
        whole["PYTHONPATH"] = str(ROOT)
        text = HEAD + textwrap.dedent(code) + TAIL
        done = programs.run(text, env={**whole, **variables}, python=python())
        said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return said

    def new_accounting(self) -> Path:
        """A file for the accounting of devices that nobody else uses."""
        return self._folder / uuid4().hex
