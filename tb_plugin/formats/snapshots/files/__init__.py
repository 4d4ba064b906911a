"""Files of allocator snapshots, found by their names: which, of which rank and step.

- `found`: one such file, and all of a run's by id;
- `names`: rank, step and label out of the names of files and of folders;
- `heads`: whether a file is a snapshot, by its first and last bytes;
- `walked`: which files of one directory are;
- `listing`: the files of one run as they lie there now.

Nothing here reads a snapshot: that is `tb_plugin.formats.snapshots`.
"""
