"""The words of module memory: categories, module states, and what folds into what.

Categories are fine names; pages colour by the eight they fold into. torch's own
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
    "bucket",  # gradients under way to other ranks, of DDP
    "activation_grad",  # on their way through a backward
)
"""Fine names; on disk a category is its index here. New ones are only appended."""

RSS_ATTRS: Final = ("rss_pre_forward", "rss_post_forward", "rss_diff")
"""Resident memory around a module's forward; the difference adds up over its forwards in
one call."""

NPP_ATTRS: Final = ("npp_pre_forward", "npp_post_forward", "npp_diff")
"""MemProfiler's count of saved bytes in the call; its difference is the last forward's."""

HOOK_ATTRS: Final = (*RSS_ATTRS, *NPP_ATTRS)
"""What the built-in hooks leave of each module, under MemProfiler's names."""

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
    "activation_grad": "activation_grad",
    "all_gather": "comm",
    "reduce_scatter": "comm",
    "bucket": "comm",
    "temp": "temp",
    "other": "unknown",
}
"""By fine name: the category that gives it its colour, in the order of legends. Of what a
category holds its fine name says more: to recompute activations frees no inputs."""

GRADIENTS: Final = tuple(name for name, group in FOLDS_INTO.items() if group == "grad")
"""Fine names of parameters' gradients."""

NOUNS: Final = {
    "param": "parameters",
    "sharded_param": "sharded parameters",
    "unsharded_param": "unsharded parameters",
    "buffer": "buffers",
    "grad": "gradients",
    "sharded_grad": "sharded gradients",
    "unsharded_grad": "unsharded gradients",
    "optimizer": "optimizer states",
    "activation": "activations",
    "input": "inputs",
    "activation_grad": "gradients of activations",
    "comm": "communication buffers",
    "all_gather": "all-gather buffers",
    "reduce_scatter": "reduce-scatter buffers",
    "bucket": "DDP's buckets",
    "temp": "temporary tensors",
    "other": "other allocations",
    "unknown": "of no known category",
}
"""By fine name, and by what they fold into: in sentences and reports."""

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

FSDP_CATEGORIES: Final = {
    "sharded_param": "Sharded Param",
    "unsharded_param": "Unsharded Param",
    "buffer": "Buffer",
    "sharded_grad": "Sharded Grad",
    "unsharded_grad": "Unsharded Grad",
    "activation": "Activation",
    "temp": "Temp",
    "all_gather": "All Gather",
    "reduce_scatter": "Reduce Scatter",
    "optimizer": "OptState",
    "input": "Inputs",
}
"""By fine name, in its order: how torch's FSDPMemTracker spells a category."""

PLAIN_CATEGORIES: Final = {
    "param": "Parameter",
    "buffer": "Buffer",
    "grad": "Gradient",
    "activation": "Activation",
    "temp": "Temp",
    "optimizer": "Optstate",
    "other": "Other",
}
"""By fine name, in its order: how torch's MemTracker spells a category."""

TORCH_COUNTS_AS: Final = {"activation_grad": "temp"}
"""By fine name that neither of torch's trackers has: the one that they count it as."""

TORCH_TOTAL: Final = "Total"

TORCH_CATEGORIES: Final = {
    label: name
    for names in (FSDP_CATEGORIES, PLAIN_CATEGORIES)
    for name, label in names.items()
}
"""By the spelling of either of torch's trackers: the fine name."""

FSDP_STATES: Final = {
    "before_pre_forward": "Before Pre-Forward",
    "after_pre_forward": "After Pre-Forward",
    "before_post_forward": "Before Post-Forward",
    "after_post_forward": "After Post-Forward",
    "before_pre_backward": "Before Pre-Backward",
    "after_pre_backward": "After Pre-Backward",
    "before_post_backward": "Before Post-Backward",
    "after_post_backward": "After Post-Backward",
    "pre_forward_ac": "Pre-Forward AC",
    "post_forward_ac": "Post-Forward AC",
    "peak_forward": "Peak Forward",
    "peak_backward": "Peak Backward",
}
"""By our name: how torch's FSDPMemTracker spells a module's state."""

PLAIN_STATES: Final = {
    "before_pre_forward": "Pre-Forward",
    "after_post_forward": "Post-Forward",
    "before_pre_backward": "Pre-Backward",
    "after_post_backward": "Post-Backward",
    "pre_forward_ac": "Pre-Forward-AC",
    "post_forward_ac": "Post-Forward-AC",
    "peak_forward": "Peak-Forward",
    "peak_backward": "Peak-Backward",
}
"""By our name: how torch's MemTracker spells a module's state."""

TORCH_STATES: Final = {
    label: name
    for names in (FSDP_STATES, PLAIN_STATES)
    for name, label in names.items()
}
"""By the spelling of either of torch's trackers: our name."""
