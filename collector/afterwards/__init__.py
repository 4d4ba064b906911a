"""Work in processes of its own after training has ended: dumps, merges."""
