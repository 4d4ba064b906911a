"""The callback for Lightning."""

from memboard.collector.integrations.lightning import MemBoardCallback

__all__ = ["MemBoardCallback"]
