"""Allocator snapshots that torch dumped, or others saved as JSON, without unpickling.

A pickle of a snapshot holds plain data alone, so whatever else is in one is refused: no
class is looked up and nothing is called. Memory stays a small multiple of the columns,
whatever the file claims. Events are recognised side by side (`batch`, `event_reader`),
which is what makes it fast.
"""
