"""What a verb raises for the user to read."""

from __future__ import annotations


class Failure(Exception):  # noqa: N818  # it ends a command, not a program
    """Something the user can mend; printed without a traceback."""

    def __init__(
        self, what: str, *, where: str = "", remedy: str = "", code: int = 1
    ) -> None:
        """`what` went wrong, `where`, and the `remedy`; printed a line each.

        `code` is the exit code: 2 where what was asked for cannot be meant.
        """
        self.code = code
        self._parts = (what, where, remedy)
        lines = [what]
        if where:
            lines.append(f"  where: {where}")
        if remedy:
            lines.append(f"  what to do: {remedy}")
        super().__init__("\n".join(lines))

    def as_problem(self) -> dict[str, object]:
        """As the page and reports list problems: `api.Problem` as plain values."""
        what, where, remedy = self._parts
        return {
            "severity": "error",
            "path": where,
            "what": f"{what[:1].upper()}{what[1:]}.",
            "where": "",
            "salvaged": "",
            "remedy": remedy,
            "rank": None,
        }
