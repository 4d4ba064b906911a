"""Plain files of a listing are opened, and links under conditions.

A link to a directory was followed by the walk. One to a file below the logdir stands for
its target. One that leads out is followed where the target, too, has a name of the kind:
whoever may write into a logdir must not have the server give any file that it may read.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final, NamedTuple

from memboard.tb_plugin import storage
from memboard.tb_plugin.api.base import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.tb_plugin.storage.contract import Status

WRITING_SECONDS: Final = 5.0
"""What a file lacks that changed this recently may still be on its way to the disk."""

_PUT_HERE: Final = "Put the file itself here."


class PlainFile(NamedTuple):
    """A file that may be opened."""

    path: str
    status: Status


class OpenRefusal(NamedTuple):
    """A file that is not opened."""

    what: str
    remedy: str

    def problem(self, shown_path: str, rank: int | None) -> Problem:
        sentence = f"This is {self.what}; it is not opened."
        return Problem("warning", shown_path, sentence, remedy=self.remedy, rank=rank)


def target_outside(path: str, root: str | None) -> str:
    """A path free of links, where it lies outside of the logdir `root`; else empty."""
    return "" if root is None or storage.is_inside(path, root) else path


def text_of_path(shown_path: str, target: str) -> str:
    """A path for people, and behind it where it lies if that is outside of the logdir."""
    return f"{shown_path} -> {target}" if target else shown_path


def plain_file(
    path: str, root: str | None, is_of_kind: Callable[[str], bool]
) -> PlainFile | OpenRefusal:
    """The file that a listing found at a path.

    Args:
        path: whose folder is free of links, or was followed.
        root: of the logdir; None: no link is followed.
        is_of_kind: whether a base name is one of the files that are looked for.

    Raises:
        OSError: there is nothing any more.
    """
    files = storage.at(path)
    status = files.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        if root is None:
            return OpenRefusal("a link", _PUT_HERE)
        path = files.realpath(path)
        try:
            status = files.lstat(path)
        except OSError:
            return OpenRefusal(
                f"a link that leads to nothing ({path})",
                "Fix the link, or delete it: the file may have been moved.",
            )
        if stat.S_ISLNK(status.st_mode):
            return OpenRefusal(
                "a link that leads around to itself", "Fix the link, or delete it."
            )
        name = os.path.basename(path)  # noqa: PTH119  # a text
        if not (storage.is_inside(path, root) or is_of_kind(name)):
            return OpenRefusal(
                f"a link that leads out of the logdir, to {path}, whose name is of another"
                " kind",
                _PUT_HERE,
            )
    if not stat.S_ISREG(status.st_mode):
        return OpenRefusal("not a regular file", _PUT_HERE)
    return PlainFile(path, status)
