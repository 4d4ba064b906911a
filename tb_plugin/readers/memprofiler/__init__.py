"""What MemProfiler leaves in a log directory, read without running any of it.

names       which file is what, by its name alone
stats       memory statistics by snap, whichever file they came from
stats_yaml  `rank_R_memory_stats.yaml`, tags of Python objects and all
stats_pickle `rank_R_memory_stats.pickle`, opcode by opcode, without an unpickler
report      `fsdp_mem_rank_R_FUNCTION_ITERATION.log`, of any torch, lines or tables
imports     all such files of one directory, followed over time, with what is wrong
"""
