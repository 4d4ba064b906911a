"""The disk contract: what lies in a logdir, how it is named, encoded and framed.

- `columns`: the columns of tables, and the catalogue of ours; `memory`, `oom`: the words
  and tables of module memory and of out-of-memory reports;
- `records`: the records of a rank's file (header, segment, schema, chunk, note, close) and
  their bytes; `digest` and `capture`: those of digests and captures;
- `rollup`: pre-aggregates rows while they are written, and says when a digest is due;
- `encoding`: columns of numbers and heads as JSON to bytes and back; payloads to
  TFRecord-framed `Event` protobufs and back, with salvage;
- `names`: directories, file names, versions; `sizes`: sizes as text, and out of text.

Unknown fields and kinds of records are ignored, and another major version is refused with
`VersionError`.
"""
