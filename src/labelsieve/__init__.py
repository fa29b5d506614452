"""Find relevant columns and wrong labels in tables with unreliable labels.

Public names are listed in ``__init__.pyi`` and imported on first use to keep the command line fast.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
