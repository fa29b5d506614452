"""Pictures of findings in the manner of scikit-learn's displays: ``from_...``, ``plot``, ``ax_``, ``figure_``."""
