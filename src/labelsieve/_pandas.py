"""pandas, which is an extra: at hand, or how to get it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

__all__ = ["has_pandas", "import_pandas"]


def has_pandas() -> bool:
    """Whether it is installed."""
    return find_spec("pandas") is not None


def import_pandas(extra: str = "pandas", error: type[Exception] = ImportError) -> Any:
    """Return the package, or say which of our extras brings it."""
    try:
        import pandas
    except ImportError:
        raise error(
            f"this needs pandas, which is not installed; pip install 'labelsieve[{extra}]'."
        ) from None
    return pandas
