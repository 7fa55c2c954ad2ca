"""Errors that a person can act on. The command line prints the sentence and exits with code 2."""


class UserError(Exception):
    """One sentence that says what is wrong and the way out."""
