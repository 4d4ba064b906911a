"""The console command `memboard`, which can say that something hides our package."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; returns the exit code."""
    try:
        from tb_plugin.cli import main as run
    except ImportError:
        from tb_plugin.hidden import hidden_by

        sentence = hidden_by()
        if not sentence:
            raise
        print(f"memboard: {sentence}", file=sys.stderr)
        return 2
    return run()
