"""From rows and notes to bytes on disk; `writer` drives it on its thread.

- `output`: one round of the thread after another: opens, writes, tries again;
- `queues`: what waits for the thread, and what found no room there; notes in order;
- `tables`: rows by table, which wait for the disk;
- `rank_file`: a rank's file, whole batches at a time, with `header` as its first record;
- `segments`, `append`: one file that only grows by whole frames, or numbered ones;
- `scalars`: rank 0's headline scalars for TensorBoard's own tabs.
"""
