"""What `collector` raises, and only before training is under way.

MemBoardError          the base: catch this to train on without recording
└── ConfigError        a setting that is unknown, ill-typed or out of range
"""

from __future__ import annotations


class MemBoardError(Exception):
    """Something the user asked for cannot be done; the message says what to do."""


class ConfigError(MemBoardError, ValueError):
    """A setting is wrong; the message names the key, the place and the remedy."""
