"""The error of everything that has to do with data."""

from collections.abc import Callable


class DatasetError(ValueError):
    """A file or dataset that cannot be used.

    Options of `read` stand in backticks in the message, so that the command line can show its own.

    Examples
    --------
    >>> from labelsieve.io import DatasetError, read
    >>> try:
    ...     read("no_such_file.csv", labels="tags")
    ... except DatasetError as error:
    ...     print(error)
    no_such_file.csv: does not exist or is not a regular file; check the path.
    """


#: Makes the error that names the file or frame; the message has no full stop yet.
Fail = Callable[[str], DatasetError]
