"""Small files that once failed or that attack a parser: each gives a dataset of known size, or one error."""

import json
from pathlib import Path

import pytest

from conftest import run, run_alone
from labelsieve.io import DatasetError, read

CORPUS = Path(__file__).parents[1] / "data" / "corpus"
#: Samples, features and labels of the files that can be read. All others are errors.
SHAPES = {
    "control-characters.csv": (3, 1, 1),
    "duplicate-names.csv": (3, 2, 2),
    "formula.csv": (3, 1, 1),
    "wide-characters.tsv": (3, 1, 1),
    "words-for-yes-that-are-tags.csv": (4, 2, 3),
}
#: Files that end a process that reads them. The command line reads them in a child process first.
DEADLY = {"wrong-element-size.mat", "wrong-type-code.mat"}
FILES = sorted(path.name for path in CORPUS.iterdir())


def test_every_listed_file_exists():
    assert {*SHAPES, *DEADLY} <= set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_the_command_line_describes_or_rejects_the_file(name, capsys, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    code, out, err = run(capsys, "datasets", "info", str(CORPUS / name), "--json")
    if name not in SHAPES:
        assert (code, out) == (1, "")
        assert err.startswith(f"error: {CORPUS / name}")
        assert err.count("\n") == 1
        assert err[:-1].isprintable()
        return
    assert code == 0
    found = json.loads(out)
    assert (found["n_samples"], found["n_features"], found["n_labels"]) == SHAPES[name]
    assert out[:-1].isprintable()


@pytest.mark.parametrize("name", sorted(set(FILES) - DEADLY))
def test_read_describes_or_rejects_the_file(name):
    if name in SHAPES:
        data = read(CORPUS / name)
        assert (*data.X.shape, len(data.label_names)) == SHAPES[name]
    else:
        with pytest.raises(DatasetError):
            read(CORPUS / name)


@pytest.mark.parametrize("name", sorted(DEADLY))
def test_deadly_files_end_the_process_that_reads_them(name):
    # If this fails, the parser was fixed, and the files no longer need a child process.
    program = "from labelsieve.io import read; read(sys.argv[1])"
    assert run_alone(program, str(CORPUS / name)).returncode < 0
