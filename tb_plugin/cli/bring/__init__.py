"""`memboard import`: other tools' files into a logdir."""
