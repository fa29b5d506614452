"""Find out which columns matter and which labels are wrong in tables with unreliable labels.

Public names are listed in ``__init__.pyi`` and imported on first use, so that the command line starts fast.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
