"""The callback for Composer's `Trainer`: `Trainer(callbacks=[MemBoardCallback()])`."""

from memboard.collector.integrations.composer import MemBoardCallback

__all__ = ["MemBoardCallback"]
