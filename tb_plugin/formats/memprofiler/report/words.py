"""The words of FSDP and module reports, whichever torch printed them.

Up to 2.6 torch prints the names of its enumerations (`_FSDPRefType.SHARDED_PARAM`),
later ones their values (`Sharded Param`); both mean the same category here.
"""

from __future__ import annotations

import re
from typing import Final

from collector.format.memory import TORCH_CATEGORIES, TORCH_STATES, TORCH_TOTAL

UNITS: Final = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

_ENUM_CATEGORIES: Final = {
    "SHARDED_PARAM": "sharded_param",
    "UNSHARDED_PARAM": "unsharded_param",
    "SHARDED_GRAD": "sharded_grad",
    "UNSHARDED_GRAD": "unsharded_grad",
    "PARAM": "param",
    "BUFFER": "buffer",
    "GRAD": "grad",
    "ACT": "activation",
    "TEMP": "temp",
    "ALL_GATHER": "all_gather",
    "REDUCE_SCATTER": "reduce_scatter",
    "OPT": "optimizer",
    "INP": "input",
    "OTH": "other",
}
_ENUM_STATES: Final = {
    "BEF_PRE_FW": "before_pre_forward",
    "AFT_PRE_FW": "after_pre_forward",
    "BEF_POST_FW": "before_post_forward",
    "AFT_POST_FW": "after_post_forward",
    "BEF_PRE_BW": "before_pre_backward",
    "AFT_PRE_BW": "after_pre_backward",
    "BEF_POST_BW": "before_post_backward",
    "AFT_POST_BW": "after_post_backward",
    "PRE_FW": "before_pre_forward",
    "POST_FW": "after_post_forward",
    "PRE_BW": "before_pre_backward",
    "POST_BW": "after_post_backward",
    "PRE_FW_AC": "pre_forward_ac",
    "POST_FW_AC": "post_forward_ac",
    "PEAK_FW": "peak_forward",
    "PEAK_BW": "peak_backward",
}
_ENUM: Final = re.compile(r"_?\w*(RefType|ModState)\.([A-Z_]+)")
_SIZE: Final = re.compile(r"(-?[0-9]{1,19}(?:\.[0-9]{1,6})?) ?(B|KiB|MiB|GiB)")

TOTAL: Final = "total"
"""What `category_of` gives for the sum of the others."""


def category_of(label: str) -> str | None:
    """The fine name of a category, `TOTAL`, or None where the label is neither."""
    if label == TORCH_TOTAL:
        return TOTAL
    enum = _ENUM.fullmatch(label)
    if enum is not None:
        return _ENUM_CATEGORIES.get(enum[2])
    return TORCH_CATEGORIES.get(label)


def state_of(label: str) -> str | None:
    """Our name of a module's state, or None where the label is none."""
    enum = _ENUM.fullmatch(label)
    if enum is not None:
        return _ENUM_STATES.get(enum[2])
    return TORCH_STATES.get(label)


def size_of(text: str) -> tuple[float, str] | None:
    """Bytes and the unit they were printed in; None where the text is no size."""
    match = _SIZE.fullmatch(text.strip())
    return None if match is None else (float(match[1]) * UNITS[match[2]], match[2])
