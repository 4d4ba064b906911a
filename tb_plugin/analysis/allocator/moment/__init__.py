"""Memory of a moment: what is used and free, in which pieces, for whom, and who pins it."""
