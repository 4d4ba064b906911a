"""Traces, spans and counters of all ranks to one Chrome trace on one clock, streamed.

Nothing is held longer than the rank at hand: memory grows neither with the number of
ranks nor with the size of files.
"""
