class FilterError(ValueError):
    """Why a filter cannot be read, or a key cannot be asked for."""
