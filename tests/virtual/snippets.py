"""Short programs on virtual GPUs: one process imports torch, each program is its fork."""

from __future__ import annotations

import json
import subprocess
import textwrap
from pathlib import Path
from typing import Any
from uuid import uuid4

from collector.virtual.devices import parse_device
from collector.virtual.environment import environment
from tests.virtual.running import python

ROOT = Path(__file__).resolve().parents[2]
OURS = ("MEMBOARD_VIRTUAL_GPU", "MEMBOARD_VIRTUAL_BOOKS")

SERVER = """
import json, os, sys, traceback, warnings
import torch, torch.distributed
import torch.nn.functional as F
warnings.simplefilter("ignore")
for line in sys.stdin:
    request = json.loads(line)
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        os.environ.update(request["variables"])
        out = {}
        try:
            exec(request["code"], {"torch": torch, "F": F, "out": out, "os": os})
        except BaseException:
            out["error"] = traceback.format_exc()
        with os.fdopen(writing, "w") as file:
            json.dump(out, file)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        answer = file.read()
    _, status = os.waitpid(pid, 0)
    print(answer or json.dumps({"error": f"ended with {status}"}), flush=True)
"""


class Snippets:
    """Runs code with `torch`, `F` and `out`, a dict of what it wants to say."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        variables = environment(parse_device("h100"), python=python())
        variables["PYTHONPATH"] = str(ROOT)
        self._server = subprocess.Popen(
            [python(), "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=variables,
        )

    def __call__(
        self, code: str, device: str = "h100", **options: Any
    ) -> dict[str, Any]:
        """What it said; `variables` are of its environment, others as `environment` has."""
        variables = options.pop("variables", {})
        options.setdefault("books", self.new_books())
        whole = environment(parse_device(device), python=python(), **options)
        chosen = {name: whole[name] for name in OURS}
        request = {"code": textwrap.dedent(code), "variables": {**chosen, **variables}}
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        said: dict[str, Any] = json.loads(self._server.stdout.readline())
        assert "error" not in said, said["error"]
        return said

    def new_books(self) -> Path:
        """A file for the books of devices that nobody else uses."""
        return self._folder / uuid4().hex

    def close(self) -> None:
        self._server.communicate()
