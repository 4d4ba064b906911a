"""Record `recorded/virtual.zip` anew: python -m tests.routes.record_virtual.

A run on a virtual H100 of everything that is recorded; MEMBOARD_VIRTUAL_PYTHON names the
Python. Times differ each time: `python -m tests.routes.update virtual` comes after it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from tests.virtual.running import Machine

RECORDED = Path(__file__).parent / "recorded" / "virtual.zip"


def main() -> int:
    """Run the program and pack what it recorded."""
    with tempfile.TemporaryDirectory() as folder:
        ran = Machine(Path(folder), "h100").run("everything")
        if not ran.ran_out:
            print(ran.error, file=sys.stderr)
            return 1
        RECORDED.parent.mkdir(exist_ok=True)
        shutil.make_archive(str(RECORDED.with_suffix("")), "zip", ran.run)
    print(f"{RECORDED}: {RECORDED.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
