"""Turn settings of MemProfiler, Composer's profiler and Lightning's into MemBoard's.

FILE is a YAML file with, somewhere in it, a `memprofiler_cfg`, a `profiler` of Composer's
(or its Trainer's `prof_*` and `torch_prof_*`) or its `callbacks` for memory and speed, or a
PyTorchProfiler of Lightning's with its `class_path`; or a program in Python that calls
Composer's. The settings go to the file named by -o, with a comment on each key, or else to
standard output with the list of keys on standard error. `mb.record(config=FILE)`
takes a `memprofiler_cfg` as it is, too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from memboard.collector.cli.failure import Failure, no_such_file
from memboard.collector.errors import ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from memboard.collector.config.documents import Document
    from memboard.collector.config.imports.result import ImportedSettings
    from memboard.collector.config.values import LocatedValue


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
    leaves, imports = _read(options.file)
    text = _text(leaves, imports, options.file)
    report = []
    for imported in imports:
        if len(imports) > 1:
            report.append(f"{imported.name}:")
        report += [str(entry) for entry in imported.entries]
        if imported.left_out:
            report.append(
                f"not of {imported.name}, left out: {', '.join(imported.left_out)}"
            )
    if options.out is None:
        print("\n".join(report), file=sys.stderr)
        print(text, end="")
        return 0
    _write(options.out, text, force=options.force)
    print("\n".join([*report, f"written to {options.out}"]))
    return 0


def _read(path: Path) -> tuple[dict[str, LocatedValue], list[ImportedSettings]]:
    """What the file sets, checked as `mb.record` checks it."""
    from memboard.collector.config.imports.callbacks import callbacks_of
    from memboard.collector.config.imports.memprofiler import imported
    from memboard.collector.config.imports.profilers import profilers_of
    from memboard.collector.config.layers import from_document, load, nested

    if not path.exists():
        raise no_such_file(path)
    try:
        document = _document(path)
        found_imports = [*callbacks_of(document), *profilers_of(document)]
        leaves = {
            p: leaf for imported in found_imports for p, leaf in imported.leaves.items()
        }
        if imported(document) is not None:
            own, imports = from_document(document)
            leaves, found_imports = {**leaves, **own}, [*imports, *found_imports]
        load(nested({path: value for path, (value, _place) in leaves.items()}))
    except ConfigError as error:
        cause = error.__cause__
        if isinstance(cause, (OSError, UnicodeError)):
            reason = getattr(cause, "strerror", None) or "it is not UTF-8 text"
            raise _refused(f"the file cannot be read: {reason}", path) from error
        raise Failure(str(error)) from error
    if not found_imports:
        is_empty = not path.stat().st_size
        raise _refused(
            "the file is empty" if is_empty else "there is nothing to import", path
        )
    return leaves, found_imports


def _refused(reason: str, path: Path) -> Failure:
    """A file that holds no settings; the remedy says which kinds are read."""
    return Failure(
        reason,
        where=str(path),
        remedy="name the file that holds a memprofiler_cfg, arguments of Composer's"
        " profiler or callbacks (its YAML, or the program that calls them) or a"
        " PyTorchProfiler of Lightning's; settings in MemBoard's own words go to"
        " mb.record(config=...) as they are",
    )


def _document(path: Path) -> Document:
    from memboard.collector.config.documents import Document, read
    from memboard.collector.config.imports.python_source import arguments_of

    if path.suffix != ".py":
        return read(path)
    plain, lines = arguments_of(path)
    return Document(plain, str(path), lines)


def _text(
    leaves: Mapping[str, LocatedValue], imports: Sequence[ImportedSettings], path: Path
) -> str:
    """The YAML, with the key that each setting comes from."""
    from memboard.collector.config.layers import nested
    from memboard.collector.config.table import as_yaml

    plain = nested(
        {
            path: list(value) if isinstance(value, tuple) else value
            for path, (value, _place) in leaves.items()
        }
    )
    comments: dict[str, str] = {}
    for imported in imports:
        for entry in imported.entries:
            by_default = "" if entry.given else ", by default"
            note = f": {entry.note}" if entry.note else ""
            for leaf in entry.leaves:
                if leaves[leaf] is imported.leaves[leaf]:  # no other key won
                    origin = f"{imported.place_of(entry.key)}{by_default}{note}"
                    before = comments.get(leaf)
                    comments[leaf] = f"{before}; {origin}" if before else origin
    heading = (
        f"MemBoard's settings, made from {path.name} by `memboard import-config`."
        " All others have their defaults; `python -m memboard.collector.config.table --markdown`"
        " lists them."
    )
    return as_yaml(plain, comments, heading)


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
