"""Hand-made out-of-memory cases, by a generator that shares nothing with the rules.

`allocator` models CUDA's caching allocator, `stacks` and `network` say what scripts and
models allocate at which line, `bench` runs a program until the device is out of memory,
`dump` writes what torch would dump. `leaks`, `too_large`, `no_room`, `holders` and
`several` hold the programs with their truths, `truth` judges a report of the command.
"""
