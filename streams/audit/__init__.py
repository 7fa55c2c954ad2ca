"""What a log shows months later: whether it is whole, and what follows from it."""
