"""Parameters of requests: declared once as fields of a Struct, and checked by its types."""

from __future__ import annotations

import re
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
)

import msgspec
from msgspec import Meta, Struct, inspect

from memboard.collector.format.sizes import SizeUnit  # noqa: TC001 - msgspec reads it
from memboard.tb_plugin.contract.errors import BadRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_PIXELS: Final = 8192
"""No screen is wider or higher, so nothing is drawn finer."""

_MOST: Final = 2**31 - 1
_MAX_SHOWN: Final = 80
_FIELD: Final = re.compile(r"\$\.(\w+)")
_SIZES: Final = ("px", "rows")
_PAIRS: Final = (("x0", "x1"), ("e0", "e1"), ("t0", "t1"), ("y0", "y1"))

Text = Annotated[str, Meta(max_length=4000)]
Whole = Annotated[int, Meta(ge=0, le=_MOST)]
Count = Annotated[int, Meta(ge=0, le=10**12)]
"""Steps, calls and cycles, as whoever wrote a file numbers them."""
Moment = Annotated[
    int,
    Meta(ge=-1, le=_MOST, description="a whole number, -1 for before all events"),
]
Rank = Annotated[int, Meta(ge=0, le=10_000_000)]
Pixels = Annotated[int, Meta(ge=1, le=MAX_PIXELS)]
Number = Annotated[float, Meta(ge=-1e18, le=1e18)]
SourceId = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}\Z", description="the id of a trace")
]


class Query(Struct, frozen=True, kw_only=True):
    """The parameters of a route; of two ends the lower comes first, however asked."""

    run: str = ""  # `RunSummary.id`
    unit: SizeUnit = "auto"
    """In which the answer's sentences tell sizes; its numbers are bytes."""

    def __post_init__(self) -> None:
        for low, high in _PAIRS:
            first, last = getattr(self, low, None), getattr(self, high, None)
            if first is not None and last is not None and last < first:
                msgspec.structs.force_setattr(self, low, last)
                msgspec.structs.force_setattr(self, high, first)


class Syntax(Protocol):
    """The type of a parameter that has a syntax of its own."""

    EXPECTED: ClassVar[str]

    @classmethod
    def parse(cls, text: str) -> Any:
        """The value of a text.

        Raises:
            ValueError: it has none.
        """


Q = TypeVar("Q", bound=Query)


def parse(query: type[Q], args: Mapping[str, str]) -> Q:
    """The parameters of a request.

    One that is empty is like one that is missing, and so is a size of 0 pixels.

    Raises:
        BadRequestError: one of them is invalid; it says which, and what it may be.
    """
    texts = {
        parameter: text
        for parameter, text in args.items()
        if text and not (text == "0" and parameter in _SIZES)
    }
    try:
        return msgspec.convert(texts, query, strict=False, dec_hook=_parsed)
    except msgspec.ValidationError as error:
        match = _FIELD.search(str(error))
        parameter = match[1] if match else "run"
        raise BadRequestError(
            f"The parameter {parameter} must be {expected(query, parameter)}.",
            f"{parameter}={texts.get(parameter, '')[:_MAX_SHOWN]}",
            "Correct the address, or reset the view.",
        ) from None


def expected(query: type[Query], parameter: str) -> str:
    """What a parameter may be, in words."""
    fields = {field.name: field for field in msgspec.structs.fields(query)}
    kind = fields[parameter].type
    for part in (kind, *get_args(kind)):  # inspected, they would stand in another order
        if get_origin(part) is Literal:
            return "one of " + ", ".join(get_args(part))
    return _words(inspect.type_info(kind))


def _parsed(kind: type[Syntax], text: str) -> Any:
    return kind.parse(text)


def _words(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.Metadata):
        described = (kind.extra_json_schema or {}).get("description")
        return str(described or _words(kind.type))
    if isinstance(kind, inspect.UnionType):
        return next(
            _words(kind_of_union)
            for kind_of_union in kind.types
            if not isinstance(kind_of_union, inspect.NoneType)
        )
    if isinstance(kind, inspect.CustomType):
        return str(getattr(kind.cls, "EXPECTED", "something else"))
    if isinstance(kind, inspect.IntType):
        return f"a whole number from {kind.ge:,} to {kind.le:,}"
    if isinstance(kind, inspect.FloatType):
        return f"a number from {kind.ge:g} to {kind.le:g}"
    if isinstance(kind, inspect.StrType) and kind.max_length is not None:
        return f"at most {kind.max_length:,} characters"
    return "something else"
