"""What `collector` raises: before training is under way, and for one misuse within it.

MemBoardError          the base: catch this to train on without recording
├── ConfigError        a setting that is unknown, ill-typed or out of range
└── SpanError          `start` or `stop` of a span, where it was not the other's turn
"""

from __future__ import annotations


class MemBoardError(Exception):
    """Something the user asked for cannot be done; the message says what to do."""


class ConfigError(MemBoardError, ValueError):
    """A setting is wrong; the message names the key, the place and the remedy."""


class SpanError(MemBoardError, RuntimeError):
    """A span was started twice, or stopped without a start; the message names it."""
