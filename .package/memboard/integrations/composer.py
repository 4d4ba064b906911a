"""The callback for Composer."""

from memboard.collector.integrations.composer import MemBoardCallback

__all__ = ["MemBoardCallback"]
