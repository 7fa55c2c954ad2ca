"""What a log shows months later: whether it is complete, and what follows from it."""
