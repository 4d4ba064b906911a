"""`memboard run --on`: a program on a virtual GPU, and whether it would fit a real one.

- `request`: the options, and the program, device, steps and ranks that they ask for;
- `ranks`: the ranks that run, and their environment;
- `launch`: starts the processes and collects their outcomes;
- `answer`: fits, does not fit, too close to call: of one run, as text and as JSON;
- `sweep`: several runs: a table, or the largest value that fits.
"""
