"""Python loads this in every process that a test starts: its folder is on PYTHONPATH.

What a program gives up after a while, so that a disk, a peer or a process that hangs
holds nobody up, a busy machine must not make it give up. A test of such a limit sets it
itself.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder

LIMITS = {
    "memboard.collector.engine": {"CLOSE_SECONDS": 300.0, "SAMPLER_SECONDS": 15.0},
    "memboard.collector.writing.writer": {"STALLED_SECONDS": 60.0},
    "memboard.collector.functions.windows": {"CLOSE_SECONDS": 60.0},
    "memboard.collector.torch_profiler.saving": {"PLACE_SECONDS": 60.0},
    "memboard.collector.afterwards.detached": {
        "_START_SECONDS": 300.0,
        "_WAIT_SECONDS": 600,
    },
    "memboard.collector.oom.report": {"REPORT_SECONDS": 60.0},
    "memboard.collector.oom.exit_hooks": {"SIGNAL_SECONDS": 60.0},
    "memboard.collector.cli.demo.launch": {"_STOP_SECONDS": 300.0},
    "memboard.tb_plugin.cli.open.command": {"_SEARCH_SECONDS": 300.0},
    "memboard.collector.cli.tensorboard": {"START_SECONDS": 300.0},
}
"""What each module's limits are, in place of those it sets."""


class Patient:
    """A finder that lifts a module's limits once the module is loaded."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Find it as others do, where it is one of these."""
        if name not in LIMITS:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def loaded(module):
            load(module)
            for limit, value in LIMITS[name].items():
                assert hasattr(module, limit), f"{name} has no {limit}"
                setattr(module, limit, value)

        spec.loader.exec_module = loaded
        return spec


if __name__ == "sitecustomize":
    sys.meta_path.insert(0, Patient)
