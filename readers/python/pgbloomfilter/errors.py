class FilterError(ValueError):
    """A filter cannot be read, or a key cannot be tested."""
