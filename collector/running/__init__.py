"""A program that `memboard run` runs: as Python would run it, with a recorder beside it.

    program.py      runs a script or a module as `__main__`
    imports.py      calls back once a module of somebody else has been imported
    iterations.py   finds the end of each iteration from the steps of optimizers
    session.py      begins and ends the recording, or steps aside for the program's own

On a virtual GPU (`memboard run --on`):

    plan.py         the task of a process, and its outcome
    child.py        does it, with what measures (device_peaks, places and their
                    value_uses, own_runtimes)
    stopping.py     ends the program after a few steps
    lone/           ranks of a job that run one after the other

Nothing of torch is imported before the program imports it: what a program sets in its
environment before that must still count.
"""
