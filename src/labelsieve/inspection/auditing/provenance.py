"""How a page was made: program, command, data, settings and time."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from labelsieve import __version__
from labelsieve.inspection.auditing.doubts import Doubts

__all__ = ["provenance", "support_said"]


def provenance(source: str, command: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Tell how something was made of the file `source`, by what the user typed; both may be ""."""
    return {
        "Program": f"labelsieve {__version__}",
        **({"Command": command} if command else {}),
        **_digest(source),
        **settings,
    }


def support_said(doubts: Doubts) -> str:
    """What the support of the labels was predicted by."""
    if doubts.penalty is None:
        return "the labels themselves: none varies"
    others = (
        "other labels not used" if doubts.label_penalty is None else f"other labels {doubts.label_penalty:g}"
    )
    return f"{doubts.kernel} regression without the row, penalty {doubts.penalty:.3g}; {others}"


def _digest(source: str) -> dict[str, str]:
    """The checksum of the file, where there is one."""
    path = Path(source) if source else None
    if path is None or not path.is_file():
        return {}
    with path.open("rb") as stream:
        return {"Data SHA-256": hashlib.file_digest(stream, "sha256").hexdigest()}
