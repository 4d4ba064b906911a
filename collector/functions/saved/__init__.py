"""What autograd saves for backward in each collected call."""
