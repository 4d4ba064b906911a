"""The allocator's history: snapshots of segments, blocks and what happened to them.

Taken at the start and the end of the collected calls, and where `rec.snapshot` asks. In
a few words: `allocator` is torch's functions, the only way to them; `recording` keeps
torch recording while somebody needs it and leaves alone what the program itself turned
on; `captures` makes a snapshot a capture, to be encoded on the writer's thread; `kind`
is the kind of collecting that uses them. What the tables hold is said in
`collector.format.snapshots`.
"""

from collector.history.kind import INFO, History, open_kind

__all__ = ["INFO", "History", "open_kind"]
