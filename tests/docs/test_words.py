"""Words that we do not use, in code, docs and tests.

Put `word: ok` on a line that needs one of them.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "docs", "examples", "benchmarks", "tests", ".github")
ENDINGS = {".py", ".md", ".html", ".js", ".css", ".toml", ".yml", ".ipynb"}
BUILT = {"_build", "_extra", "api", "gallery", "methods"}

#: Pattern of the word -> what to write instead.
WORDS = {
    r"\bdata sets?\b": "dataset",
    r"\bdoubt\w*": "flagged, label issue",
    r"\bsuspects?\b": "flagged",
    r"\bstead(?:y|iness)\b": "stable, stability",
    r"\bshuffles\b": "permutations",
    r"\bone's own\b|\bof ones own\b": "your, user-defined",
    r"\bwhoever\b|\bnobody\b|\bsomebody\b": "you, the user",
    r"\banew\b": "again",
    r"\brefus(?:e|es|ed|al|ing)\b": "raise, reject",
    r"\bmend(?:s|ed)?\b": "fix",
    r"\bunless given\b": "default",
    r"\bbetter than chance\b": "significant",
    r"\bis no\b(?! longer)(?<!there is no)(?<!There is no)": "is not a",
    r"^\s*(?:\"\"\"|#:? )(?:What|Whether|How|Where|Which)\b(?![^?]*\?)": "verb or noun phrase",
}


def texts():
    for path in sorted(ROOT.glob("*.md")):
        yield path
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in ENDINGS and not BUILT & set(path.relative_to(ROOT / folder).parts[:1]):
                yield path


@pytest.mark.parametrize(("pattern", "instead"), WORDS.items(), ids=WORDS.values())
def test_words_to_avoid(pattern, instead):
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        if path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(pattern, line, re.IGNORECASE) and "word: ok" not in line
    ]
    assert not found, f"write {instead}:\n" + "\n".join(found)
