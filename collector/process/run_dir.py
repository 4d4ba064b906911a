"""The directory that a recording goes into, as the user names it."""

from __future__ import annotations

import os
from pathlib import Path

from memboard.collector.errors import ConfigError


def run_dir_of(logdir: str | Path) -> Path:
    """The run's own directory, absolute: training may change the working directory.

    Raises:
        ConfigError: no local directory can be meant.
    """
    if not isinstance(logdir, (str, os.PathLike)):
        raise ConfigError(
            f"logdir must be a path, got a {type(logdir).__name__}. Name the run's"
            " directory, e.g. runs/exp1."
        )
    text = os.fsdecode(logdir)
    try:
        impossible = b"\0" in os.fsencode(text)
    except UnicodeEncodeError:
        impossible = True
    if impossible:
        raise ConfigError(
            f"logdir {text!r} holds a character that no path can hold. Remove it."
        )
    if "://" in text:
        raise ConfigError(
            f"logdir {text!r} is not a local directory. Record into a local one and set"
            " remote to this url, which mirrors it there."
        )
    if not text.strip():
        raise ConfigError("logdir is empty. Name the run's directory, e.g. runs/exp1.")
    try:
        return Path(os.path.abspath(Path(text).expanduser()))  # noqa: PTH100
    except (OSError, RuntimeError) as error:
        raise ConfigError(
            f"logdir {text!r} cannot be resolved: {error}. The working directory may be gone,"
            " or the home directory unknown; give an absolute path."
        ) from error


def free_run_dir(logdir: Path, run_name: str) -> Path:
    """`logdir/name`, or `name-2`, `name-3` ... where that is taken."""
    candidate, number = logdir / run_name, 1
    while candidate.exists():
        number += 1
        candidate = logdir / f"{run_name}-{number}"
    return candidate
