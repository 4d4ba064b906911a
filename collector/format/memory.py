"""The words of module memory: categories, module states, and what folds into what.

Categories are fine names; pages colour by the seven they fold into. torch's own
trackers use other spellings for the same things: `TORCH_CATEGORIES` and `TORCH_STATES`
translate them, for its text reports and as an oracle in tests.
"""

from __future__ import annotations

from typing import Final

CATEGORIES: Final = (
    "param",  # of modules that nobody shards
    "sharded_param",
    "unsharded_param",
    "buffer",
    "grad",
    "sharded_grad",
    "unsharded_grad",
    "optimizer",
    "activation",
    "input",
    "all_gather",
    "reduce_scatter",
    "temp",
    "other",
)
"""Fine names; on disk a category is its index here. New ones are only appended."""

FOLDS_INTO: Final = {
    "param": "param",
    "sharded_param": "param",
    "unsharded_param": "param",
    "buffer": "param",
    "grad": "grad",
    "sharded_grad": "grad",
    "unsharded_grad": "grad",
    "optimizer": "optimizer",
    "activation": "activation",
    "input": "activation",
    "all_gather": "comm",
    "reduce_scatter": "comm",
    "temp": "temp",
    "other": "unknown",
}
"""By fine name: the category that gives it its colour."""

STATES: Final = (
    "before_pre_forward",
    "after_pre_forward",
    "before_post_forward",
    "after_post_forward",
    "before_pre_backward",
    "after_pre_backward",
    "before_post_backward",
    "after_post_backward",
    "pre_forward_ac",  # recomputed in backward, by activation checkpointing
    "post_forward_ac",
    "before_optimizer",  # of the whole step: module -1
    "after_optimizer",
)
"""Recorded boundaries; on disk a state is its index here. New ones are only appended.

A module without FSDP has `before_pre_forward`, `after_post_forward`,
`before_pre_backward` and `after_post_backward` of the first eight.
"""

PEAK_STATES: Final = ("peak_forward", "peak_backward")
"""Computed from the events between a module's boundaries, never recorded."""
