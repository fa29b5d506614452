"""Configuration of the documentation site (``make docs``). Neither build nor pages use the network."""

import sys
from pathlib import Path

import labelsieve

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))
from measured_facts import facts

project = "labelsieve"
author = "The labelsieve developers"
project_copyright = "the labelsieve developers, BSD-3 licence"
version = release = labelsieve.__version__

extensions = [
    "sphinx.ext.autodoc",
    # Our extensions write pages before the others look for them.
    "mathml",
    "repository_pages",
    "api_pages",
    "method_pages",
    "result_pages",
    "notebook_pages",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_extensions", "_extra", "gallery/**/*.md5"]
templates_path: list[str] = []
default_role = "code"
# Method pages show the references of a docstring, but not all text that cites them.
suppress_warnings = ["ref.footnote"]

myst_enable_extensions = ["colon_fence", "dollarmath", "substitution"]
myst_substitutions = facts()
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings describe them in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "gallery_order.LearningOrder",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 5,
    "write_computation_times": False,  # that page would load scripts from other servers
    "matplotlib_animations": False,
    "backreferences_dir": "api/used_in",
    "doc_module": ("labelsieve",),
    "show_signature": False,
    "plot_gallery": True,
}

html_theme = "pydata_sphinx_theme"
html_title = f"labelsieve {release}"
html_static_path = ["_static"]
html_extra_path = ["_extra"]
html_css_files = ["site.css"]
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "labelsieve"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"get_started": [], "glossary": [], "project/cite": [], "index": []}
