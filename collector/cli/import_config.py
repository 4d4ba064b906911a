"""Turn MemProfiler's settings into MemBoard's, and say what each key became.

FILE is a YAML file with a `memprofiler_cfg` somewhere in it. The settings go to the file
named by -o, with a comment on each key, or else to standard output with the list of keys
on standard error. `collector.record(config=FILE)` takes FILE as it is, too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.cli.failure import Failure
from collector.errors import ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from collector.config_layers import Merged

HELP = "turn MemProfiler's settings into MemBoard's"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `memboard import-config`."""
    parser.add_argument("file", type=Path, metavar="FILE", help="what to read")
    parser.add_argument(
        "-o", "--out", type=Path, metavar="OUT", help="the YAML file to write"
    )
    parser.add_argument(
        "--force", action="store_true", help="write OUT although it is there already"
    )


def run(options: argparse.Namespace) -> int:
    """Write the settings and the list."""
    layer = _layer(options.file)
    text = _text(layer, options.file)
    report = [str(entry) for entry in layer.imported[0].entries]
    if left_out := layer.imported[0].left_out:
        report.append(f"not of memprofiler_cfg, left out: {', '.join(left_out)}")
    if options.out is None:
        print("\n".join(report), file=sys.stderr)
        print(text, end="")
        return 0
    _write(options.out, text, force=options.force)
    print("\n".join([*report, f"written to {options.out}"]))
    return 0


def _layer(path: Path) -> Merged:
    """What the file sets, checked as `collector.record` checks it."""
    from collector.config import load
    from collector.config_file import read
    from collector.config_layers import from_document

    try:
        layer = from_document(read(path), str(path))
        load(path)
    except ConfigError as error:
        raise Failure(str(error)) from error
    if not layer.imported:
        raise Failure(
            "there is no memprofiler_cfg to import",
            where=str(path),
            remedy="name the file that holds it; settings in MemBoard's own words go"
            " to collector.record(config=...) as they are",
        )
    return layer


def _text(layer: Merged, path: Path) -> str:
    """The YAML, with the key that each setting comes from."""
    from collector.config_yaml import as_yaml

    plain: dict[str, Any] = {}
    for leaf_path, (value, _place) in layer.leaves.items():
        name, _, leaf = leaf_path.partition(".")
        held = plain.setdefault(name, {}) if leaf else plain
        held[leaf or name] = list(value) if isinstance(value, tuple) else value
    heading = (
        f"MemBoard's settings, made from {path.name} by `memboard import-config`."
        " All others have their defaults; `python -m collector.config --markdown`"
        " lists them."
    )
    return as_yaml(plain, _comments(layer), heading)


def _comments(layer: Merged) -> Mapping[str, str]:
    """By leaf: the key that it comes from; none where our own key beside it won."""
    found = layer.imported[0]
    comments: dict[str, str] = {}
    for entry in found.entries:
        given = "" if entry.given else ", by default"
        note = f": {entry.note}" if entry.note else ""
        for path in entry.leaves:
            if layer.leaves[path] is found.leaves[path]:
                comments[path] = f"memprofiler_cfg.{entry.key}{given}{note}"
    return comments


def _write(out: Path, text: str, *, force: bool) -> None:
    try:
        with out.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise Failure(
            "the file to write is there already",
            where=str(out),
            remedy="name another one, or add --force to replace it",
        ) from error
    except OSError as error:
        raise Failure(
            f"cannot write: {error.strerror or error}",
            where=str(out),
            remedy="name a file in a directory that you may write to",
        ) from error
