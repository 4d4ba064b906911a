"""What waits to be written: rows, notes, captures, and calls that write later."""
