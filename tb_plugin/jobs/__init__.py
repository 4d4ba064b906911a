"""What is opened in the background and kept: histories, traces, what follows from them."""
