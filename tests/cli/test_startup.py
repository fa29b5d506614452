"""Tests of lazy imports of public names, methods and commands."""

import inspect
import pickle
import subprocess
import sys
from importlib import import_module

import pytest

import labelsieve
from labelsieve import METHODS
from labelsieve.cli import COMMANDS

HEAVY = {"jinja2", "joblib", "matplotlib", "numpy", "pandas", "scipy", "sklearn"}


def imported_by(program):
    """Return the top-level packages that a separate process imports."""
    shown = (
        f"import sys\n{program}\nprint(*{{name.partition('.')[0] for name in sys.modules}}, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], []])
def test_the_package_imports_nothing_slow(arguments):
    imported = imported_by(f"from labelsieve.cli import main; main({arguments!r})")
    assert "typer" in imported
    assert not imported & HEAVY


def test_the_command_line_imports_nothing_slow():
    program = "import runpy; sys.argv[1:] = ['--version']\ntry: runpy.run_module('labelsieve', run_name='__main__')\n"
    program += "except SystemExit as end: assert end.code == 0"
    assert not imported_by(program) & HEAVY


def test_slugs_are_listed_without_importing_methods():
    program = "from labelsieve import METHODS; assert 'rfs' in METHODS and len(METHODS) == len(list(METHODS))"
    assert not imported_by(program) & HEAVY


def test_importing_a_method_imports_no_other():
    program = "import labelsieve; labelsieve.SumF; labelsieve.METHODS['gmm']\n"
    program += "print(*(name for name in sys.modules if name.startswith('labelsieve.methods.')))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {program}"], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == {"labelsieve.methods.sum_f", "labelsieve.methods.gmm"}


def test_exactly_the_public_names_are_exported():
    assert set(dir(labelsieve)) == set(labelsieve.__all__)
    assert all(hasattr(labelsieve, name) for name in labelsieve.__all__)


def test_methods_are_a_mapping():
    assert METHODS.get("pml-fsmir") is METHODS["pml-fsmir"] is labelsieve.PMLFSMIR
    assert METHODS.get("pml-fsmr") is None
    assert "_base" not in METHODS
    assert dict(METHODS.items()) == {slug: METHODS[slug] for slug in METHODS}
    assert all(pickle.loads(pickle.dumps(method)) is method for method in METHODS.values())
    with pytest.raises(KeyError, match="nothing"):
        METHODS["nothing"]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_the_program_and_of_commands_agree(name):
    function = name.replace("-", "_")
    module = import_module(f"labelsieve.cli.{function}")
    text = module.app.info.help if hasattr(module, "app") else inspect.getdoc(getattr(module, function))
    assert text.partition("\n")[0] == COMMANDS[name]
