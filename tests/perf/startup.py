"""Costs of starts: `import memboard`, and TensorBoard with the plugin.

    python -m tests.perf.startup [--rounds 15]

Each round starts fresh interpreters in turn, so that a drift of the machine hits all
sides; the figures are medians over the rounds.
"""

from __future__ import annotations

import statistics
from functools import partial

from tests.perf import bench

# What `tensorboard` itself does until it could serve, with and without our entry point:
# every plugin is found, loaded and put into the application.
TENSORBOARD = """
import json, sys, time
start = time.perf_counter()
from tensorboard import default, program
plugins = [p for p in default.get_plugins() if {keep} or "tb_plugin" not in repr(p)]
board = program.TensorBoard(plugins)
board.configure(argv=["tensorboard", "--logdir", "/nonexistent", "--load_fast", "false"])
from tensorboard.backend import application
ingester = board._make_data_ingester()
app = application.TensorBoardWSGIApp(
    board.flags, board.plugin_loaders, ingester.data_provider, board.assets_zip_provider
)
seconds = time.perf_counter() - start
assert ("memboard.tb_plugin.plugin" in sys.modules) is {keep}
print(json.dumps(seconds * 1e3))
"""

IMPORT = """
import json, time
start = time.perf_counter()
import {module}
print(json.dumps((time.perf_counter() - start) * 1e3))
"""


def main() -> None:
    given = bench.options(__doc__, rounds=15)
    codes = {
        f"import {module}": IMPORT.format(module=module)
        for module in ("memboard", "memboard.collector.recorder", "torch")
    }
    for name, keep in (("tensorboard without", False), ("tensorboard with", True)):
        codes[name] = TENSORBOARD.format(keep=keep)
    ways = {name: partial(bench.printed, code) for name, code in codes.items()}
    found = bench.turns(ways, given.rounds)
    pairs = zip(found["tensorboard with"], found["tensorboard without"], strict=True)
    found["the plugin adds"] = [a - b for a, b in pairs]
    row = bench.table("fresh interpreter, ms", "median", "lowest", "highest")
    for name, values in found.items():
        row(name, statistics.median(values), min(values), max(values))


if __name__ == "__main__":
    main()
