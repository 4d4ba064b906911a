"""Fixtures of the tests of what is collected around calls."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def _nothing_compiled():
    """Another test of this process may have compiled something: hooks would stay away."""
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None:
        dynamo.reset()
