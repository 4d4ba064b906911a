"""Imported once by the fork server: what every worker needs is there when it begins."""

from __future__ import annotations

import gc
import io
from contextlib import suppress
from importlib import import_module

from memboard.tb_plugin.worker import process
from memboard.tb_plugin.worker.errors import ImportFailedError
from memboard.tb_plugin.worker.limits import KINDS

__all__ = ["process"]

for _kind in KINDS:
    _module = import_module(_kind.module)
    if _kind.sample:
        # A worker that meets what is wrong here says so.
        with suppress(ImportFailedError, OSError):
            _module.imported(io.BytesIO(_kind.sample))
gc.freeze()
