"""What may have caused an error: free memory that did not fit, memory that was full or taken."""
