"""The callback for Lightning's `Trainer`: `Trainer(callbacks=[MemBoardCallback()])`."""

from memboard.collector.integrations.lightning import MemBoardCallback

__all__ = ["MemBoardCallback"]
