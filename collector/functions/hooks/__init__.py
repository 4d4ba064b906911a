"""What hooks on modules say through each collected call."""
