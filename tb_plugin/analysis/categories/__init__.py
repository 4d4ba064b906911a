"""What an allocation was: parameter, gradient, activation, optimizer state ..."""
