"""Files for other tools at the end of a recording: `memboard export`, run beside it.

It is a process of its own, so that neither its memory nor any fault of it is training's:
it reads the rank's file as anybody could later. What goes wrong is one warning with the
command that makes up for it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collector.format.names import EXPORT_MARK
from collector.trouble import warn

if TYPE_CHECKING:
    from collector.config_sections import DumpsConfig

DUMP_SECONDS: Final = 60.0
"""The longest that the end of a recording waits for its dumps."""

NOTHING: Final = "the recording holds nothing"
"""How the process says that what was asked for was never recorded."""

_KINDS: Final = ("yaml", "pickle", "fsdp_report", "history")
_MAX_SAID: Final = 500
_ROOT: Final = Path(__file__).resolve().parent.parent
"""Where this very package lies: that is what the process must import."""


class Dumps:
    """What a recording leaves besides its own file."""

    def __init__(self, settings: DumpsConfig, run_dir: Path) -> None:
        """`settings.dir` is taken now: training may change the working directory."""
        self._options = [
            f"--{kind.replace('_', '-')}" for kind in _KINDS if getattr(settings, kind)
        ]
        self._options += ["--depth", str(settings.depth), "--units", settings.units]
        if settings.tabulate:
            self._options.append("--tabulate")
        folder = Path(settings.dir).expanduser() if settings.dir else None
        self._folder = run_dir / "memprofiler" if folder is None else folder.absolute()
        self.is_on = any(getattr(settings, kind) for kind in _KINDS)

    def write(self, recorded: Path | None) -> list[Path]:
        """Write what was asked for from the rank's file, which is complete. Never raises.

        Returns the files that were written, and what says whose they are.

        Takes at most `DUMP_SECONDS`. Files that are there already stay: the new ones go
        into a directory of the attempt's name beside them.
        """
        if not self.is_on or recorded is None:
            return []
        command = [sys.executable or "python3", "-m", "collector.cli", "export"]
        command += [str(recorded), "-o", str(self._folder), "--keep", *self._options]
        try:
            done = subprocess.run(  # noqa: S603  # our own interpreter and arguments
                command,
                cwd=_ROOT,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=DUMP_SECONDS,
                check=False,
            )
        except Exception as error:  # noqa: BLE001  # the border to training
            self._warn(recorded, f"{type(error).__name__}: {error}")
            return []
        said = done.stderr.decode(errors="replace").strip()
        absent = _absent(said)
        if absent:
            warn(
                "of the files for other tools that dumps asks for, those that there is"
                " nothing to write into are not written: %s. All others are in %s.",
                absent[-_MAX_SAID:],
                self._folder,
            )
        elif done.returncode or said:
            self._warn(recorded, said or f"it ended with code {done.returncode}")
        named = [Path(line) for line in os.fsdecode(done.stdout).splitlines()]
        marks = dict.fromkeys(path.with_name(EXPORT_MARK) for path in named)
        return [path for path in (*named, *marks) if path.is_file()]

    def _warn(self, recorded: Path, why: str) -> None:
        warn(
            "not all files for other tools could be written at the end of the recording:"
            " %s. The recording itself is complete; write them with: memboard export %s"
            " -o %s %s",
            why[-_MAX_SAID:],
            recorded,
            self._folder,
            " ".join(self._options),
        )


def _absent(said: str) -> str:
    """What was not recorded and why, where nothing worse is said."""
    found = []
    for line in said.splitlines():
        if NOTHING in line:
            found.append(line.removeprefix("memboard export: "))
        elif not line.startswith("  "):  # where, and what to do
            return ""
    return "; ".join(found)


def _environment() -> dict[str, str]:
    """This process's, so that what can be imported here can be imported there."""
    paths = [path for path in sys.path if path and Path(path).exists()]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
