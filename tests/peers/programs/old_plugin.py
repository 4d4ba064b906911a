"""What torch-tb-profiler's routes answer about folders of traces.

    python -m tests.peers.programs.old_plugin SETTINGS

SETTINGS is JSON: `folders`, each a run with its traces, and `answers`, the file to write:
by folder `views`, by file (worker and span) and by `All` what each route says, or the
status of a request that failed.
"""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import Any

# Each file is read in a process of its own, which would import torch anew.
os.environ["TORCH_PROFILER_START_METHOD"] = "forkserver"

from tensorboard.plugins.base_plugin import TBContext
from torch_tb_profiler.plugin import TorchProfilerPlugin
from werkzeug.test import Client

OF_A_TRACE = {
    "overview": {},
    "operation/table": {"group_by": "Operation"},
    "kernel/table": {"group_by": "Kernel"},
    "kernel/tc_pie": {},
    "memory": {"memory_metric": "B"},
    "memory_curve": {"time_metric": "us", "memory_metric": "B"},
    "memory_events": {"time_metric": "us", "memory_metric": "B"},
    "module": {},
}
OF_RANKS = ("distributed/overlap", "distributed/waittime", "distributed/commops")


class Plugin:
    """Requests to the plugin's routes for one folder."""

    def __init__(self, folder: str) -> None:
        plugin = TorchProfilerPlugin(TBContext(logdir=folder, flags=None))
        self.routes = plugin.get_plugin_apps()
        while not (names := self.get("runs")["runs"]):
            time.sleep(0.05)
        (self.run,) = names

    def get(self, route: str, **query: str) -> Any:
        response = Client(self.routes[f"/{route}"]).get(f"/{route}", query_string=query)
        if response.status_code != 200:
            return {"status": response.status_code}
        body = response.data
        if response.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        return json.loads(body)

    def answers(self) -> dict[str, Any]:
        views = self.get("views", run=self.run)
        found: dict[str, Any] = {"views": views}
        for worker in self.get("workers", run=self.run, view="Overview"):
            for span in self.get("spans", run=self.run, worker=worker):
                found[f"{worker}.{span}"] = {
                    route: self._of(route, worker, span, query)
                    for route, query in OF_A_TRACE.items()
                }
        if "Distributed" in views:
            for span in self.get("spans", run=self.run, worker="All"):
                found[f"All.{span}"] = {
                    route: self._of(route, "All", span, {}) for route in OF_RANKS
                }
        return found

    def _of(self, route: str, worker: str, span: str, query: dict[str, str]) -> Any:
        try:
            return self.get(route, run=self.run, worker=worker, span=span, **query)
        except (AttributeError, KeyError, TypeError) as error:  # a server says 500
            return {"status": 500, "error": repr(error)}


def main(settings: dict[str, Any]) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.peers.programs"])
    answers = {folder: Plugin(folder).answers() for folder in settings["folders"]}
    Path(settings["answers"]).write_text(json.dumps(answers))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
