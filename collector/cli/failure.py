"""Errors of commands, for the user to read."""

from __future__ import annotations

from memboard.collector.format.sizes import printable


class Failure(Exception):  # noqa: N818  # it ends a command, not a program
    """Something the user can mend: `what`, `where` and the `remedy`, a line each."""

    def __init__(self, what: str, *, where: object = "", remedy: str = "") -> None:
        self.what = what
        self.where = printable(str(where))
        self.remedy = remedy
        lines = [what]
        if self.where:
            lines.append(f"  where: {self.where}")
        if remedy:
            lines.append(f"  what to do: {remedy}")
        super().__init__("\n".join(lines))


def no_such_file(place: object) -> Failure:
    """A path of the command line at which nothing lies."""
    return Failure(
        "there is no such file",
        where=place,
        remedy="check the path; it is taken relative to where you are",
    )


class UsageError(Exception):
    """Options that cannot be meant; printed below the verb's usage."""
