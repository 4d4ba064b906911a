"""The disk contract: what lies in a logdir, how it is named, encoded and framed.

Cast, in the order a datum meets them:

- `columns`: what a table's columns are (name, unit, group) and the catalogue of ours;
- `records`: the typed records of a rank's file (header, schema, chunk, digest, note,
  close);
- `numeric`: numpy columns to bytes and back (frame of reference, delta, deflate), with
  `small_block` for very few rows and `packing` for the bytes themselves;
- `rollup`: pre-aggregates rows while they are written, for the digest;
- `pace`: when a digest is due;
- `codec`: records to bytes and back;
- `memory`: the words of module memory, as they are stored;
- `capture` and `capture_parts`: captures to bytes and back, in numbered parts;
- `framing`: bytes to TFRecord-framed `Event` protobufs and back, with salvage;
- `names`: directories, file names, versions.

Old versions stay decodable for ever, unknown fields and record kinds are ignored, and
a newer major version is refused with `TooNewError`. Migrations live in the decoder.
"""
