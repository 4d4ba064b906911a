"""Callbacks that record inside a trainer; each needs only the trainer it serves.

from memboard.integrations.lightning import MemBoardCallback
from memboard.integrations.transformers import MemBoardCallback
from memboard.integrations.composer import MemBoardCallback
"""
