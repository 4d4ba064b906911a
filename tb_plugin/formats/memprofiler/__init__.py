"""What MemProfiler leaves in a log directory, read without running any of it.

names           which file is what, by its name alone
listing         the files of one directory, looked at and not opened
imports         what they hold together, read when asked for
contents        what one of them holds, and what is wrong with it
stats           memory statistics by snap, whichever file they came from
stats_yaml      `rank_R_memory_stats.yaml`, tags of Python objects and all
yaml_events     YAML as a stream of events, bounded
stats_pickle    `rank_R_memory_stats.pickle`, by the machine of snapshots
stat_names      MemProfiler's names of statistics and ours
report          `fsdp_mem_rank_R_FUNCTION_ITERATION.log`, lines or tables, of any torch
modules_yaml    `rank_R_fsdp_memory_stats.yaml`, many calls in exact bytes
report_rows     rows of memory by module, whichever file they came from
report_words    torch's words in them
"""
