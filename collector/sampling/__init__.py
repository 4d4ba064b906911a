"""When sources are asked, and what is said of them."""
