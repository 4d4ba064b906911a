"""The parameters of the routes about steps, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, get_args

from tb_plugin import api
from tb_plugin.analysis.step_parts import OTHER, PARTS, STEP
from tb_plugin.parameters import integer_of, word_of

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_STEP: Final = 10**12 - 1
HEAT_PARTS: Final = (STEP, *PARTS, OTHER)


@dataclass(frozen=True, slots=True)
class StepsQuery:
    """What is to be shown; see `api` for the meaning of each."""

    of: api.StepsOf | None = None
    part: str = STEP
    """What the heatmap compares: the step's time, or one part of it."""
    step: int | None = None


def parse_steps_query(args: Mapping[str, str]) -> StepsQuery:
    """Check the parameters of a request.

    Raises:
        BadRequestError: one of them means nothing; names it.
    """
    return StepsQuery(
        of=word_of(args, "of", get_args(api.StepsOf)),  # type: ignore[arg-type]
        part=word_of(args, "part", HEAT_PARTS) or STEP,
        step=integer_of(args, "step", MAX_STEP),
    )
