"""Makes the environment of the packages that MemBoard is compared with.

    python -m tests.peers.environment .venv-peers

It has torch, Lightning and MemBoard of the environment that runs this, and besides what
`requirements.txt` names, each at its version and without what it would ask for: Composer
pins a torch older than any that these tests run with.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def make(folder: Path) -> Path:
    """Its Python; an environment that is there is brought up to date."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    program = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = subprocess.check_output([python, "-c", program], text=True).strip()
    shared = sysconfig.get_path("purelib")
    Path(own, "shared.pth").write_text(f"import site; site.addsitedir({shared!r})\n")
    options = ["--quiet", "--disable-pip-version-check", "--no-compile", "--no-deps"]
    command = [python, "-m", "pip", "install", *options, "--retries=5"]
    subprocess.check_call([*command, "-r", REQUIREMENTS])
    return python


if __name__ == "__main__":
    print(make(Path(sys.argv[1])))
