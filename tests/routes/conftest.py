"""Fixtures of the plugin's tests: patience with slow machines, and a cache of its own."""

from tests.tb_plugin.conftest import _cache_of_its_own, _patient

__all__ = ["_cache_of_its_own", "_patient"]
