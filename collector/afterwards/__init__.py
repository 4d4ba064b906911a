"""What goes on in processes of its own after training has ended: dumps, merges."""
