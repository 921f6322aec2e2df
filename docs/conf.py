"""The documentation site, which `make docs` builds in target/docs.

The pages are those in this directory, which can also be read on their own; the reference for the Python package is
generated from its stubs and docstrings. Nothing is loaded from other hosts.
"""

import re
import shutil
import sys
from html import escape
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT / "tools"))

import try_page  # noqa: E402 - needs the path above
from docutils import nodes  # noqa: E402
from published import PACKAGE, absolute  # noqa: E402
from sphinx.domains.python import PythonDomain  # noqa: E402
from sphinx.ext import napoleon  # noqa: E402

project = "cordwood"
author = "the cordwood developers"
release = version = PACKAGE["version"]

extensions = ["myst_parser", "autoapi.extension", "sphinx.ext.napoleon", "sphinx_copybutton"]
suppress_warnings = [
    "ref.python",  # An exception is in cordwood and in cordwood.errors: a link leads to one of them.
]

myst_heading_anchors = 6
default_role = "code"
napoleon_use_ivar = True
napoleon_numpy_docstring = False
# `cordwood.open` lists its options in two groups.
napoleon_custom_sections = [("Options for reading", "params_style"), ("Options for writing", "params_style")]

html_theme = "furo"
html_title = "cordwood"
html_baseurl = PACKAGE["homepage"] + "/"
html_favicon = "_static/favicon.svg"
html_search_scorer = str(DOCS / "search_scorer.js")
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "source_view_link": PACKAGE["repository"] + "/blob/main/docs/{filename}",
    "top_of_page_buttons": ["view"],
}

# When a command is copied, its prompt and output are left out.
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.highlight-text) > div.highlight pre"

# The first pages in each section of the sidebar. The other pages in the section's directory follow, sorted by name.
SIDEBAR = {
    "Start": ["install", "tutorial", "try"],
    "Guides": [
        "guides/own-log",
        "guides/service",
        "guides/many-logs",
        "engines",
        "guides/libraries",
        "guides/training",
        "guides/rescue",
        "guides/forensics",
        "guides/tables",
        "guides/databases",
        "guides/change-feed",
        "guides/troubleshooting",
        "guides/which-log",
    ],
    "Reference": ["cli/index", "Python <reference/api/cordwood/index>", "reference/rust"],
    "The format": [
        "format/implement",
        "format/reading",
        "format/numbered",
        "format/writing",
        "format/following",
        "format/packed",
        "format/damage",
    ],
    "Behind it": ["survival", "performance", "guarantees", "safety", "versions", "changelog", "design", "glossary"],
}
DIRECTORIES = {"Guides": "guides", "Reference": "reference", "The format": "format", "Behind it": "."}


def pages_of(directory: str) -> list[str]:
    """The pages in a directory, sorted by name."""
    return sorted(path.relative_to(DOCS).with_suffix("").as_posix() for path in (DOCS / directory).glob("*.md"))


def toctree(pages: list[str], *options: str) -> str:
    """The lines that add pages to the sidebar."""
    return "\n".join(["", "", "```{toctree}", ":hidden:", *options, "", *pages, "```", ""])


def sidebar() -> str:
    """The lines of all sections."""
    named = {page for pages in SIDEBAR.values() for page in pages} | {"index"}
    rest = {
        caption: [page for page in pages_of(directory) if page not in named]
        for caption, directory in DIRECTORIES.items()
    }
    return "".join(
        toctree([*pages, *rest.get(caption, [])], f":caption: {caption}") for caption, pages in SIDEBAR.items()
    )


# The reference names each class where users import it from, not where it is defined.
DEFINED = r"\bcordwood\._[\w.]*\.(?=[A-Z])"
PUBLIC_NAMES = {
    DEFINED: "cordwood.",
    r"(?<=Bases: :py:obj:`)_(Region|Changed)Error": "cordwood.CordwoodError",
    # Users don't construct it.
    r"(?<=py:class:: DecodedScan)\(.*\)": "",
}


def prepare(_app, page: str, text: list[str]) -> None:
    """Adds the sidebar to the front page, and points links that leave this directory to the repository."""
    if page.startswith("reference/api/"):
        for private, public in PUBLIC_NAMES.items():
            text[0] = re.sub(private, public, text[0])
        return
    directory = (Path("docs") / page).parent.as_posix()
    if page == "changelog":
        directory, text[0] = ".", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        text[0] = text[0].replace("](docs/", "](")
    text[0] = absolute(text[0], directory, PACKAGE["repository"], PACKAGE["version"], kept="docs")
    if page == "index":
        text[0] += sidebar()
    if page == "cli/index":
        text[0] += toctree([f"/{verb}" for verb in pages_of("cli") if verb != page])


# The Python package ------------------------------------------------------------------------------

# A copy of the sources that autoapi can follow. In the copy, the stub doesn't import modules that import the stub, and
# functions that Python creates from others at run time are replaced by those in the stub, which have signatures.
SOURCES = ROOT / "target" / "docs-sources" / "cordwood"
shutil.rmtree(SOURCES, ignore_errors=True)
PRIVATE = shutil.ignore_patterns("cli", "_spark", "__main__.py", "*.so")
shutil.copytree(ROOT / "python" / "cordwood", SOURCES, ignore=PRIVATE)


def replace(name: str, pattern: str, by: str) -> None:
    """Replaces all matches in one of the copied files, which must have one."""
    text, count = re.subn(pattern, by, (SOURCES / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    if not count:
        sys.exit(f"{name} has no match for {pattern}: repair docs/conf.py")
    (SOURCES / name).write_text(text, encoding="utf-8")


def replace_all(directory: str, text: str, pattern: str, by: str) -> None:
    """Replaces all matches in the files of a directory that contain this text."""
    found = [each for each in SOURCES.glob(f"{directory}/*.py") if text in each.read_text(encoding="utf-8")]
    for each in found:
        replace(each.relative_to(SOURCES).as_posix(), pattern, by)
    if not found:
        sys.exit(f"{directory} has no {text!r}: repair docs/conf.py")


IN_STORE = "RangeReadable | FsspecFile | tuple[ObjectStore, str]"
replace("_native.pyi", r"^from (?:cordwood[\w.]*|_typeshed) import (\([^)]*\)|.*)\n", "")
replace("_native.pyi", r"^_(?:Object|InStore): TypeAlias = .*\n\"\"\".*\n", "")
replace("_native.pyi", r"\b_Object\b", f"ReadableBuffer | Readable | {IN_STORE}")
replace("_native.pyi", r"\b_InStore\b", IN_STORE)
replace("compat/wandb.py", r"\b_Path\b(?!:)", "str | bytes | os.PathLike[str] | os.PathLike[bytes]")
replace("compat/wandb.py", r"(?<=obj: )_Message", "Any")
replace("compat/appengine.py", r"(?<=: )_Writable", "Any")
replace("typing.py", r"from _typeshed import .*", "pass")
replace_all("payload", "`docs/", r"`docs/([\w/]+)\.md`", r":doc:`/\1`")
# autoapi takes the names from one list, and does not look at imports for type checkers.
replace_all("**", "__all__ +=", r"\]\n__all__ \+= \[", ", ")
replace("__init__.py", r"^if TYPE_CHECKING:\n", "")
replace("__init__.py", r"^    (?=from cordwood\._)", "")
replace("__init__.py", r"(?<=_many import Results), (.*)$", r"\nfrom cordwood._native import \1")
# These modules import the package that imports them.
replace_all("_evidence", "from cordwood import ", r"^from cordwood import .*\n", "")
replace_all("_map", "from cordwood import ", r"^from cordwood import .*\n", "")
replace("_evidence/__init__.py", r"\) -> Evidence:", ") -> cordwood.Evidence:")


class Docstring(napoleon.GoogleDocstring):
    """Takes types only from the stub: in a property or a result, the words before a colon aren't a type."""

    def _text(self, lines: list[str]) -> list[str]:
        return type(self)(self._dedent(lines), self._config).lines()

    def _consume_inline_attribute(self) -> tuple[str, list[str]]:
        return "", self._text(self._consume_to_end())

    def _consume_returns_section(self, **_) -> list[tuple[str, str, list[str]]]:
        return [("", "", self._text(self._consume_to_next_section()))]


napoleon.GoogleDocstring = Docstring

autoapi_type = "python"
autoapi_dirs = [str(SOURCES)]
autoapi_root = "reference/api"
autoapi_add_toctree_entry = False
autoapi_options = ["members", "show-module-summary", "undoc-members", "show-inheritance", "imported-members"]
autoapi_member_order = "groupwise"
autoapi_python_class_content = "class"


def publish(_app, _what, _name, member, *_) -> None:
    """Uses the same names in the lists of functions, which aren't part of a page's text."""
    if getattr(member, "return_annotation", None):
        member.return_annotation = re.sub(DEFINED, "cordwood.", member.return_annotation)


# Search, and the head of each page ----------------------------------------------------------------

objects_of = PythonDomain.get_objects


def one_for_each_name(domain: PythonDomain) -> list[tuple]:
    """The names that search finds. A class in `cordwood` isn't listed again under `cordwood.types`."""
    found = list(objects_of(domain))
    names = {name for name, *_ in found}
    is_repeated = re.compile(r"cordwood\.(?:types|errors|typing)\.")
    return [
        (name, *rest, -1 if is_repeated.sub("cordwood.", name, count=1) in names - {name} else priority)
        for name, *rest, priority in found
    ]


PythonDomain.get_objects = one_for_each_name


def describe(_app, page: str, _template, context: dict, document) -> None:
    """Adds a page's first paragraph as its description, and a card that is shown wherever the page is linked."""
    if page.startswith("reference/api/"):
        # The page is generated, so the repository has no source to link to.
        context["page_source_suffix"] = ""
    paragraph = next(document.findall(nodes.paragraph), None) if document else None
    if paragraph is None:
        return
    text = " ".join(paragraph.astext().split())
    text = text if len(text) <= 200 else text[:200].rsplit(" ", 1)[0] + " ..."
    title = re.sub(r"<[^>]*>", "", context["title"])
    tags = {
        "og:type": "website",
        "og:site_name": project,
        "og:title": title if page == "index" else f"{title} - {project}",
        "og:description": text,
        "og:url": context["pageurl"],
        "og:image": f"{html_baseurl}_static/card.png",  # 1,200 by 630, with cli/map.svg.
    }
    lines = [f'<meta name="description" content="{escape(text)}">']
    lines += [f'<meta property="{name}" content="{escape(content)}">' for name, content in tags.items()]
    context["metatags"] += "\n".join(lines)


def missing_page(app, _error) -> None:
    """The page for an address that does not exist. It can be served at any address, so it loads no files."""
    text = (DOCS / "missing.html").read_text(encoding="utf-8")
    (Path(app.outdir) / "404.html").write_text(text.replace("HOME", html_baseurl), encoding="utf-8")


def finish(app, failure: Exception | None) -> None:
    """Inserts the log reader into its page."""
    if not failure:
        try_page.complete(Path(app.outdir) / "try.html")


def setup(app) -> None:
    """Sphinx calls it."""
    app.connect("html-page-context", describe)
    app.connect("build-finished", missing_page)
    app.connect("build-finished", finish)
    app.connect("autoapi-skip-member", publish)
    app.connect("source-read", prepare)
