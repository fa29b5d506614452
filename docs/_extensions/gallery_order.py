"""Order the examples for a learner, not by name."""

ORDER = (
    "tagged_text.py",
    "wrong_labels.py",
    "promises.py",
    "automatic_size.py",
    "stability.py",
    "anything_to_find.py",
    "wide_table.py",
    "digits.py",
    "noise_models.py",
    "compare_selectors.py",
    "critical_difference.py",
    "sparse_text_pipeline.py",
    "own_method.py",
    "out_of_core.py",
    "fsmir_stages.py",
)


class LearningOrder:
    """Sort key of sphinx-gallery for file names."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> int:
        """Return the position of an example. All examples must be in `ORDER`."""
        return ORDER.index(name)

    def __repr__(self) -> str:
        return "LearningOrder"
