"""Parameters of the routes about module memory, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from tb_plugin import api
from tb_plugin.errors import BadRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

Against: TypeAlias = Literal["state", "window", "rank", "median"]
Axis: TypeAlias = Literal["time", "event"]

MAX_CALL: Final = 1_000_000_000
MAX_RANK: Final = 10_000_000
_MAX_TEXT: Final = 4000


@dataclass(frozen=True, slots=True)
class ModulesQuery:
    """What is to be shown; see `api` for the meaning of each."""

    window: str | None = None
    module: str = ""
    state: str | None = None
    call: int | None = None
    device: str | None = None
    measure: api.ModuleMeasure = "total"
    against: Against | None = None
    against_state: str | None = None
    against_window: str | None = None
    against_rank: int | None = None
    axis: Axis = "time"


def parse_modules_query(args: Mapping[str, str]) -> ModulesQuery:
    """Check the parameters of a request.

    Raises:
        BadRequestError: one of them means nothing; names it.
    """
    states = get_args(api.ModuleState)
    return ModulesQuery(
        window=_text(args, "window"),
        module=_text(args, "module") or "",
        state=_word(args, "state", states),
        call=_integer(args, "call", MAX_CALL),
        device=_text(args, "device"),
        measure=_word(args, "measure", get_args(api.ModuleMeasure)) or "total",  # type: ignore[arg-type]  # one of these words
        against=_word(args, "against", get_args(Against)),  # type: ignore[arg-type]
        against_state=_word(args, "against_state", states),
        against_window=_text(args, "against_window"),
        against_rank=_integer(args, "against_rank", MAX_RANK),
        axis=_word(args, "axis", get_args(Axis)) or "time",  # type: ignore[arg-type]
    )


def _text(args: Mapping[str, str], name: str) -> str | None:
    text = args.get(name)
    if text is not None and len(text) > _MAX_TEXT:
        raise _bad(name, text, f"at most {_MAX_TEXT} characters")
    return text or None


def _word(args: Mapping[str, str], name: str, words: tuple[str, ...]) -> str | None:
    text = args.get(name) or None
    if text is not None and text not in words:
        raise _bad(name, text, "one of " + ", ".join(words))
    return text


def _integer(args: Mapping[str, str], name: str, most: int) -> int | None:
    text = args.get(name) or None
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise _bad(name, text, "a whole number")
    return min(int(text), most)


def _bad(name: str, value: str, expected: str) -> BadRequestError:
    return BadRequestError(
        f"The parameter {name} must be {expected}.",
        f"{name}={value[:80]}",
        "Correct the address, or reset the view.",
    )
