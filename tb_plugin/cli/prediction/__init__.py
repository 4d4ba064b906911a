"""`memboard run --on`: a program on a virtual GPU, and whether it would fit a real one.

request.py    what was asked for: the program, the device, how long, how many
launch.py     starts the processes and collects what came of them
estimates.py  what lies outside of torch's allocator, as ranges with their source
answer.py     fits, does not fit, too close to say: one run's figures and the rule
wording.py    the same as text and as JSON
sweep.py      several runs: a table, or the largest that fits
"""
