"""Errors about files and datasets."""

from collections.abc import Callable


class DatasetError(ValueError):
    """Error about a file or dataset that cannot be used.

    The message puts options of `read` in backticks, so that the command line can replace them with its own.

    Examples
    --------
    >>> from labelsieve.io import DatasetError, read
    >>> try:
    ...     read("no_such_file.csv", labels="tags")
    ... except DatasetError as error:
    ...     print(error)
    no_such_file.csv: does not exist or is not a regular file; check the path.
    """


#: Function from a message without a full stop to an error that names the file or frame.
Fail = Callable[[str], DatasetError]
