"""What every part of the recorder builds on: the guard at the border, and contracts."""
