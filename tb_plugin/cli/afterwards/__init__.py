"""Programs that a recording starts when a rank has ended: none is a verb."""
