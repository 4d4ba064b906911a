"""The disk contract: what lies in a logdir, how it is named, encoded and framed.

- `columns`: the columns of tables, and the catalogue of ours; `memory`, `oom`: the words
  and tables of module memory and of out-of-memory reports;
- `records`: the records of a rank's file (header, segment, schema, chunk, note, close) and
  their bytes; `digest` and `capture`: those of digests and captures;
- `numeric`: columns of numbers to bytes and back; `payload`: heads as JSON, with blocks;
- `rollup`: pre-aggregates rows while they are written; `pace`: when a digest is due;
- `framing`: payloads to TFRecord-framed `Event` protobufs and back, with salvage;
- `names`: directories, file names, versions; `run_index`: a run's index at a store.

Unknown fields and kinds of records are ignored, and a newer major version is refused with
`TooNewError`.
"""
