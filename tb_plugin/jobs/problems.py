"""What is said of something that could not be opened."""

from __future__ import annotations

import logging
from typing import Protocol

from memboard.collector.format.errors import CorruptError, FormatError
from memboard.collector.format.sizes import capitalized
from memboard.tb_plugin.api.base import Problem
from memboard.tb_plugin.contract.errors import RequestError
from memboard.tb_plugin.worker.errors import ImportFailedError

_logger = logging.getLogger(__name__)


class Openable(Protocol):
    """Something that can be opened."""

    @property
    def path_text(self) -> str:
        """Where it lies, for a person."""

    @property
    def rank(self) -> int | None: ...


def problem_of(openable: Openable, error: Exception) -> Problem:
    """Why something could not be opened, for a person."""
    where = ""
    if isinstance(error, ImportFailedError | RequestError):
        sentence, where, remedy = error.what, error.where, error.remedy
    elif isinstance(error, CorruptError):
        sentence, remedy = (
            _sentence(error),
            "Open another one: others are not affected.",
        )
    elif isinstance(error, FormatError):
        sentence, remedy = (
            _sentence(error),
            "Open it with the MemBoard version that wrote it.",
        )
    elif isinstance(error, OSError):
        sentence = f"The file cannot be read: {error.strerror or error}."
        remedy = "Check that the file is still there and may be read."
    elif isinstance(error, MemoryError):
        sentence = "There is not enough memory to open it."
        remedy = "Close other programs, or open MemBoard on a machine with more memory."
    else:
        return failed_problem(openable.path_text, error, openable.rank)
    return Problem(
        "error",
        openable.path_text,
        sentence[:1000],
        remedy=remedy[:1000],
        where=where[:500],
        salvaged="Everything else of the run.",
        rank=openable.rank,
    )


def failed_problem(
    shown_path: str, error: Exception, rank: int | None = None
) -> Problem:
    """The problem of what failed by a fault of ours; the log has the traceback."""
    _logger.error("%s could not be read", shown_path, exc_info=error)
    return Problem(
        "error",
        shown_path,
        f"Reading it failed: {type(error).__name__}: {error}."[:1000],
        remedy="This is a fault of MemBoard's: please report it, with the traceback in the"
        " log.",
        salvaged="Everything else.",
        rank=rank,
    )


def _sentence(error: Exception) -> str:
    return f"{capitalized(str(error))}."
