"""The callback for Hugging Face's Trainer."""

from memboard.collector.integrations.transformers import MemBoardCallback

__all__ = ["MemBoardCallback"]
