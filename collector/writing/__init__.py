"""From rows and notes to bytes on disk; `collector.writing.writer` drives it on its thread.

- `waiting`: what is queued for the thread, and what found no room there;
- `output`: one round of the thread after another: opens, writes, moves, tries again;
- `tables`, `notebook`: what waits: rows by table, notes in order;
- `rank_file`: a rank's file, whole batches at a time, with `header` as its first record;
- `scalars`: rank 0's headline scalars for TensorBoard's own tabs;
- `append`: one file that only grows, by whole frames;
- `bell`: how the training thread wakes the writer.
"""
