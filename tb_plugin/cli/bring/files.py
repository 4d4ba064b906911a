"""Bring memory snapshots, whoever dumped them, into a run of a logdir.

Each FILE becomes a capture of the rank its name tells (`memory_snapshot_rank3.pickle`,
`step_40/rank3_memory_snapshot.pickle`), in the form that MemBoard records: small, quick
to open, beside the other ranks of the run. With --rank all files are of that rank; a file
whose name tells none is rank 0's. Where each capture came from is kept with it. The files
stay as they are; one too large for a capture is copied instead.

Exit code 2 where no file can be read, or what is asked for cannot be meant; a file that
cannot is told, and the others are imported.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from collector.cli.failure import Failure
from tb_plugin.cli.addresses import path_or_url

if TYPE_CHECKING:
    import argparse

HELP = "bring memory snapshots into a run of a logdir"

MAX_RANK: Final = 9_999_999


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `memboard import`."""
    parser.add_argument(
        "files",
        nargs="+",
        type=path_or_url,
        metavar="FILE",
        help="a snapshot; a path, or a URL such as s3://bucket/snapshot.pickle",
    )
    parser.add_argument(
        "--logdir",
        required=True,
        type=Path,
        metavar="L",
        help="what TensorBoard is given",
    )
    parser.add_argument(
        "--run",
        required=True,
        dest="name",
        metavar="R",
        help="the run's name, a directory of the logdir; one that is there gets an"
        " attempt more",
    )
    parser.add_argument(
        "--rank",
        type=int,
        default=None,
        metavar="N",
        help="the rank that all files are of (default: as their names say, else 0)",
    )


def run(options: argparse.Namespace) -> int:
    """Import what can be read."""
    from tb_plugin.cli.bring.snapshots import copied, origins_of, read_all, written
    from tb_plugin.cli.named_files import sorted_out, tell

    run_dir = _run_dir(options)
    good, bad = sorted_out(options.files, folders=False, traces=False)
    origins = origins_of(good, options.rank)
    read, large, failed = read_all(origins)
    bad += failed
    if not read and not large:
        tell(bad[:-1], "import")
        raise bad[-1]
    tell(bad, "import")
    try:
        files = written(run_dir, read)
        copies = copied(run_dir, large)
    except OSError as error:
        raise Failure(
            f"the run cannot be written: {error.strerror or error}",
            where=str(run_dir),
            remedy="name a logdir that you may write to, on a disk with room",
        ) from error
    for line in (*files, *copies):
        print(line)
    print(f"Look at it with:\n  tensorboard --logdir {options.logdir}")
    return 0


def _run_dir(options: argparse.Namespace) -> Path:
    name = Path(options.name)
    if not options.name.strip() or name.is_absolute() or ".." in name.parts:
        raise Failure(
            f"--run is {options.name!r}",
            remedy="name a directory below the logdir, such as exp1",
            code=2,
        )
    if options.rank is not None and not 0 <= options.rank <= MAX_RANK:
        raise Failure(
            f"--rank is {options.rank}",
            remedy=f"give a rank from 0 to {MAX_RANK}",
            code=2,
        )
    path: Path = options.logdir.expanduser()
    if path.exists() and not path.is_dir():
        raise Failure(
            "the logdir is a file",
            where=str(path),
            remedy="name a directory with --logdir",
            code=2,
        )
    return path / name
