"""Callbacks that record inside a trainer; each needs only the trainer it serves.

from memboard.integrations.lightning import MemBoardCallback
from memboard.integrations.transformers import MemBoardCallback
from memboard.integrations.composer import MemBoardCallback

They are thin: what the trainer knows (phases, epochs, steps, sizes of batches, model and
optimizers) is passed on to a recorder, which `session` keeps.
"""
