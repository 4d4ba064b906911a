"""A program that `memboard run` runs: as Python would run it, with a recorder beside it.

    program.py      runs a script or a module as `__main__`
    imports.py      calls back once a module of somebody else has been imported
    iterations.py   tells the end of each iteration from the steps of optimizers
    models.py       finds the models that an optimizer trains
    session.py      begins and ends the recording, or steps aside for the program's own

Nothing of torch is imported before the program imports it: what a program sets in its
environment before that must still count.
"""
