"""The Timeline: series of all ranks over steps or time."""
