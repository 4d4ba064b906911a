"""Parameters of the route about calls of functions, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tb_plugin.parameters import integer_of, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class FunctionsQuery:
    """What is to be shown; see `api` for the meaning of each."""

    function: str | None = None
    attempt: int | None = None
    iteration: int | None = None
    stat: str | None = None


def parse_functions_query(args: Mapping[str, str]) -> FunctionsQuery:
    """Check the parameters of a request.

    Raises:
        BadRequestError: one of them means nothing; names it.
    """
    return FunctionsQuery(
        function=text_of(args, "function"),
        attempt=integer_of(args, "attempt", _MOST),
        iteration=integer_of(args, "iteration", _MOST),
        stat=text_of(args, "stat"),
    )
