"""The frames of a rank's file: where they lie, and what is wrong with them."""
