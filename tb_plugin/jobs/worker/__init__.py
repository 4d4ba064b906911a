"""Files of other tools become tables: read by a worker process, kept as mapped columns.

- `kinds`: what is read, by which module, within which limits;
- `importer`: from the cache or by a worker; `running_import` is one such file;
- `worker` and `worker_process`: the process that reads it, from both sides, and `limits`;
- `fork_server` and `forks`: what makes such processes quickly, from both sides;
- `column_file` and `column_cache`: tables in a file that is mapped, and where those are;
- `errors`: why there are no tables, with what to do.

A worker is given an open file and no path, and opens none.
"""
