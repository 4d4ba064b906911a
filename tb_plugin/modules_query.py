"""Parameters of the routes about module memory, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from tb_plugin import api
from tb_plugin.parameters import integer_of, text_of, word_of

if TYPE_CHECKING:
    from collections.abc import Mapping

Against: TypeAlias = Literal["state", "window", "rank", "median"]
Axis: TypeAlias = Literal["time", "event"]

MAX_CALL: Final = 1_000_000_000
MAX_RANK: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class ModulesQuery:
    """What is to be shown; see `api` for the meaning of each."""

    window: str | None = None
    module: str = ""
    state: str | None = None
    call: int | None = None
    device: str | None = None
    measure: api.ModuleMeasure = "held"
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
        window=text_of(args, "window"),
        module=text_of(args, "module") or "",
        state=word_of(args, "state", states),
        call=integer_of(args, "call", MAX_CALL),
        device=text_of(args, "device"),
        measure=word_of(args, "measure", get_args(api.ModuleMeasure)) or "held",  # type: ignore[arg-type]  # one of these words
        against=word_of(args, "against", get_args(Against)),  # type: ignore[arg-type]
        against_state=word_of(args, "against_state", states),
        against_window=text_of(args, "against_window"),
        against_rank=integer_of(args, "against_rank", MAX_RANK),
        axis=word_of(args, "axis", get_args(Axis)) or "time",  # type: ignore[arg-type]
    )
