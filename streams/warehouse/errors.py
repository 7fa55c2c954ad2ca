"""Errors of the warehouse. Each message is one sentence."""


class WarehouseError(Exception):
    """The warehouse cannot be opened, or its page cannot be served, as configured."""
