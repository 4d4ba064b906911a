"""The console command `memboard`, which can say that something hides our package.

That is a file or folder named `collector` where Python looks first: beside the script that
was started, in the directory of `python -m`, or on PYTHONPATH.
"""

from __future__ import annotations

import logging
import sys
from importlib.util import find_spec
from pathlib import Path

_logger = logging.getLogger("memboard")


def main() -> int:
    """Run the command line; returns the exit code."""
    try:
        from memboard.tb_plugin.cli import main as run
    except ImportError:
        sentence = hidden_by()
        if not sentence:
            raise
        print(f"memboard: {sentence}", file=sys.stderr)
        return 2
    return run()


def hidden_by() -> str:
    """What hides our package, and what to do, as sentences; empty: nothing does."""
    try:
        ours = Path(__file__).resolve().parent.parent / "collector" / "__init__.py"
        loaded = sys.modules.get("collector")
        spec = find_spec("collector") if loaded is None else loaded.__spec__
        if spec is None:
            return ""
        found = spec.origin or next(iter(spec.submodule_search_locations or ()), "")
        if not found or Path(found).resolve() == ours:
            return ""
    except (ImportError, AttributeError, TypeError, ValueError, OSError):
        _logger.debug("what hides the package could not be found", exc_info=True)
        return ""
    return (
        f"{found} hides MemBoard's own package 'collector'. Rename it, or start from"
        " another directory."
    )
