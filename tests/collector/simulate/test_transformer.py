"""The modelled training holds what such a training holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.simulate.allocator.allocator import CachingAllocator
from collector.simulate.allocator.settings import round_size
from collector.simulate.curves import (
    DEVICE_TOTAL_BYTES,
    MODELLED_STEPS,
    NON_TORCH_BYTES,
    model_curves,
    training_shape,
)
from collector.simulate.modules.transformer import TransformerShape, TransformerTraining
from collector.simulate.stats import ACTIVE, ALLOCATED, REQUESTED

SHAPE = TransformerShape(
    num_layers=3,
    hidden=512,
    feed_forward=1376,
    num_heads=8,
    vocabulary=1000,
    num_shards=4,
    max_tokens=2048,
)


def state_bytes(shape: TransformerShape) -> int:
    """Parameters and both moments of Adam, as sharded fp32, asked for by tensor."""
    embedding = shape.vocabulary * shape.hidden
    tensors = [embedding, *(shape.layer_tensors * shape.num_layers), embedding]
    shards = sum(-(-elements // shape.num_shards) for elements in tensors)
    return 3 * 4 * shards + 4 * len(tensors)


def test_between_steps_only_sharded_parameters_and_moments_are_held():
    allocator = CachingAllocator(1 << 36)
    training = TransformerTraining(SHAPE, allocator)
    before = allocator.stats.get(REQUESTED)
    training.step(2048)
    assert allocator.stats.get(REQUESTED) == state_bytes(SHAPE) > 2 * before
    held = allocator.stats.get(ALLOCATED)
    for tokens in (1024, 2048, 64):
        training.step(tokens)
        assert allocator.stats.get(REQUESTED) == state_bytes(SHAPE)
        assert allocator.stats.get(ALLOCATED) == allocator.stats.get(ACTIVE)
    # Rounding differs with what a block was cut from, never by more than a block's grain.
    assert abs(allocator.stats.get(ALLOCATED) - held) <= 0.02 * held


def test_a_step_peaks_at_least_at_all_saved_activations():
    allocator = CachingAllocator(1 << 36)
    training = TransformerTraining(SHAPE, allocator)
    for tokens in (512, 2048):
        held = allocator.stats.get(ALLOCATED)
        allocator.stats.reset_peaks()
        training.step(tokens)
        saved = SHAPE.num_layers * sum(
            round_size(size) for size in SHAPE.saved_tensors(tokens)
        )
        rise = allocator.stats.get_peak(ALLOCATED) - held
        assert saved < rise < 3 * saved + state_bytes(SHAPE)


def test_activations_grow_with_tokens_and_states_shrink_with_shards():
    assert SHAPE.activation_bytes(2000) == 2 * SHAPE.activation_bytes(1000)
    # Billions of parameters, as the names of the presets say.
    sizes = [training_shape(n).num_parameters / 1e9 for n in (1, 8, 64, 4096)]
    assert sizes == pytest.approx([1.35, 6.74, 13.0, 13.0], rel=0.01)


@settings(max_examples=4, deadline=None)
@given(st.sampled_from([1, 2, 8, 4096]), st.integers(0, 1000))
def test_curves_keep_torch_s_relations_and_fit_the_device(num_ranks, seed):
    curves = model_curves(training_shape(num_ranks), seed, MODELLED_STEPS + 20)
    columns = curves.columns
    assert all(len(c) == MODELLED_STEPS + 20 for c in columns.values())
    for infix in ("", "_small_pool", "_large_pool"):
        allocated = columns[f"allocated{infix}_bytes"]
        active = columns[f"active{infix}_bytes"]
        pieces = columns[f"inactive_split{infix}_bytes"]
        reserved = columns[f"reserved{infix}_bytes"]
        assert (allocated <= active).all()
        assert (active + pieces <= reserved).all()
        assert (np.diff(reserved) >= 0).all()
        for stat in ("allocated", "active", "reserved", "inactive_split"):
            current = columns[f"{stat}{infix}_bytes"]
            peak = columns[f"{stat}{infix}_peak_bytes"]
            assert (peak >= current).all()
    limit = DEVICE_TOTAL_BYTES - NON_TORCH_BYTES
    assert columns["reserved_peak_bytes"].max() <= limit
    # A training worth looking at: it fills most of the device and fragments.
    assert columns["reserved_bytes"][-1] > DEVICE_TOTAL_BYTES // 2
    assert len(np.unique(columns["allocated_peak_bytes"])) > 5
