"""Hand-made out-of-memory cases, by a generator that shares nothing with the rules.

`allocator` models CUDA's caching allocator, `stacks` and `network` say what scripts and
models allocate at which line, `bench` runs a program until the device is out of memory,
`dump` writes what torch would dump. `programs` holds the programs with their truths,
`truth` judges a report of the command.
"""
