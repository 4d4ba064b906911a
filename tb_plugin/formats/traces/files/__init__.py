"""Files of traces, found by their names: which, of which rank, worker and cycle.

- `found`: one such file, and all of a run's by id;
- `names`: worker, rank and cycle out of the names of files and of folders;
- `heads`: the rank that the first bytes of a file tell;
- `listing`: the files of one run as they lie there now;
- `captured`: traces that our own recordings point to;
- `sources`: all of them for the Trace view.

Nothing here reads a trace: that is `tb_plugin.formats.traces`.
"""
