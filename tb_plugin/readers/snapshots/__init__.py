"""Allocator snapshots that torch dumped as pickles, read without unpickling.

- `pickle_file`: a file to the tables of `collector.format.snapshots`;
- `machine`: the few pickle opcodes that build plain data, within limits;
- `events`: allocator events as columns while they are read;
- `patterns`: whole events recognised at once, which is what makes it fast;
- `memo`: what the pickle may refer back to;
- `errors`: why a file is refused.

A pickle of a snapshot holds plain data alone, so whatever else is in one is refused: no
class is looked up and nothing is called. Memory stays a small multiple of the columns,
whatever the file claims.
"""
