"""What of the recorder stands among a program's own frames and slices."""
