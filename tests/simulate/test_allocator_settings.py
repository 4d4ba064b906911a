"""Rounding and settings, against numbers worked out by hand from torch's documentation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulate.allocator.settings import (
    GIB,
    MIB,
    UNLIMITED,
    AllocatorSettings,
    parse_settings,
    round_size,
    segment_size,
)


@pytest.mark.parametrize(
    ("asked", "rounded"), [(1, 512), (512, 512), (513, 1024), (MIB + 1, MIB + 512)]
)
def test_sizes_are_multiples_of_512(asked, rounded):
    assert round_size(asked) == AllocatorSettings().round_size(asked) == rounded


@pytest.mark.parametrize(
    ("block", "segment"),
    [
        (512, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 512, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 512, 12 * MIB),
        (21 * MIB, 22 * MIB),
    ],
)
def test_segments_are_2_or_20_or_twice_k_mebibytes(block, segment):
    assert segment_size(block) == segment


@pytest.mark.parametrize(
    ("divisions", "asked", "rounded"),
    [
        # torch's own example: 1200 with 4 divisions lies between 1024, 1280 ... 2048;
        # but sizes up to 512 x divisions keep multiples of 512.
        (4, 1200, 1536),
        (4, 2049, 2560),
        (4, 2 * MIB + 1, 2 * MIB + 512 * 1024),
        (4, 5 * MIB + MIB // 2, 6 * MIB),
        (8, 5 * MIB + 1, 5 * MIB + MIB // 2),
        (8, 4 * MIB, 4 * MIB),
        (2, 3 * MIB + 1, 4 * MIB),
        (1, 3 * MIB + 1, 3 * MIB + 512),
    ],
)
def test_roundup_power2_divisions(divisions, asked, rounded):
    settings = parse_settings(f"roundup_power2_divisions:{divisions}")
    assert settings.round_size(asked) == rounded


def test_divisions_by_size():
    settings = parse_settings("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]")
    # Below the first key as at it; 256 MiB is the ninth power of two from 1 MiB on.
    assert settings.roundup_power2_divisions == (1,) * 9 + (2, 4) + (8,) * 5
    assert settings.round_size(100 * MIB + 1) == 100 * MIB + 512
    assert settings.round_size(600 * MIB) == 768 * MIB
    assert settings.round_size(1100 * MIB) == 1280 * MIB
    assert settings.round_size(5 * GIB + 1) == 5 * GIB + GIB // 2
    gaps = parse_settings("roundup_power2_divisions:[4:2,16:4]")
    assert gaps.roundup_power2_divisions == (2, 2, 2, 0, 4) + (0,) * 11


@given(st.integers(1, 1 << 40), st.sampled_from([1, 2, 4, 8, 16, 64]))
def test_rounding_up_never_loses_and_never_wastes_more_than_a_division(
    asked, divisions
):
    settings = AllocatorSettings(roundup_power2_divisions=(divisions,) * 16)
    rounded = settings.round_size(asked)
    assert rounded >= asked
    assert rounded % 512 == 0
    assert rounded - asked < max(512, asked / divisions)
    assert settings.round_size(rounded) == rounded


def test_all_settings_of_a_text():
    text = (
        "expandable_segments:True, max_split_size_mb:64,garbage_collection_threshold:0.8,"
        "max_non_split_rounding_mb:40,backend:native"
    )
    settings = parse_settings(text)
    assert settings.text == text
    assert settings.expandable_segments
    assert settings.max_split_bytes == 64 * MIB
    assert settings.garbage_collection_threshold == 0.8
    assert settings.max_non_split_rounding_bytes == 40 * MIB
    assert parse_settings("") == AllocatorSettings()
    assert AllocatorSettings().max_split_bytes == UNLIMITED


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("max_split_size_mb:20", "max_split_size_mb is 20"),
        ("max_split_size_mb:lots", "max_split_size_mb cannot be 'lots'"),
        ("garbage_collection_threshold:1.5", "from 0 to below 1"),
        ("expandable_segments:yes", "expandable_segments cannot be 'yes'"),
        ("roundup_power2_divisions:3", "powers of two"),
        ("roundup_power2_divisions:[100:4]", "cannot be"),
        ("max_split_size_mb", "no key:value"),
    ],
)
def test_what_torch_refuses_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        parse_settings(text)
