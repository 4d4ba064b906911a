"""What MemBoard adds to starts: `import collector`, and TensorBoard with the plugin.

Run: python -m tests.perf.startup [--rounds 15]

Each round starts fresh interpreters, with and without, in turn, so that a drift of the
machine hits both sides; the figures are medians over the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

# What `tensorboard` itself does until it could serve, with and without our entry point:
# every plugin is found, loaded and put into the application.
TENSORBOARD = """
import time
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
import sys
print(seconds, int("tb_plugin.plugin" in sys.modules))
"""

IMPORT = """
import time
start = time.perf_counter()
import collector
print(time.perf_counter() - start, 1)
"""

RECORD = """
import time
start = time.perf_counter()
import collector
collector.record
print(time.perf_counter() - start, 1)
"""


def seconds(code: str) -> tuple[float, float, int]:
    """(inside the interpreter, whole process, what the code counted)."""
    start = time.perf_counter()
    output = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    whole = time.perf_counter() - start
    inside, count = output.split()
    return float(inside), whole, int(count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    figures: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, code, count in (
            ("import collector", IMPORT, 1),
            ("import collector; collector.record", RECORD, 1),
            ("tensorboard without", TENSORBOARD.format(keep=False), 0),
            ("tensorboard with", TENSORBOARD.format(keep=True), 1),
        ):
            inside, _, counted = seconds(code)
            assert counted == count, f"{name}: {counted} plugins loaded"
            figures.setdefault(name, []).append(inside * 1e3)
    for name, values in figures.items():
        low, high = min(values), max(values)
        print(
            f"{name:36s} median {statistics.median(values):7.1f} ms"
            f"  (min {low:.1f}, max {high:.1f})"
        )
    pairs = zip(
        figures["tensorboard with"], figures["tensorboard without"], strict=True
    )
    added = [a - b for a, b in pairs]
    print(f"{'the plugin adds':36s} median {statistics.median(added):7.1f} ms")


if __name__ == "__main__":
    main()
