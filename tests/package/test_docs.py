"""Every example in the documentation prints the output shown below it, and every link leads somewhere."""

import ast
import doctest
import io
import os
import re
import sys
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path

import pages
import pytest
import torch_substitute
import transcript

import cordwood

PACKAGE = Path(cordwood.__file__).parent
ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "docs/index.md",
    "docs/cli/evidence.md",
    "docs/format/implement.md",
    "docs/engines.md",
    "docs/reference/arrow.md",
    "docs/reference/compat.md",
    "docs/reference/exports.md",
    "docs/guides/change-feed.md",
    "docs/guides/forensics.md",
    "docs/guides/libraries.md",
    "docs/guides/own-log.md",
    "docs/guides/many-logs.md",
    "docs/guides/rescue.md",
    "docs/guides/service.md",
    "docs/guides/tables.md",
    "docs/guides/training.md",
    "docs/reference/payload.md",
    "docs/reference/remote.md",
    "docs/reference/spark.md",
    "docs/reference/wandb.md",
]
# Their examples need a package that `make test-engines` installs.
NEEDS = {
    "beam.py": "apache_beam",
    "docs/engines.md": "apache_beam",
    "docs/guides/libraries.md": "datasets",
    "docs/reference/spark.md": "pyspark",
}
# Their commands use files that their examples in Python write.
WITH_COMMANDS = [
    "README.md",
    "docs/tutorial.md",
    "docs/guides/databases.md",
    "docs/guides/forensics.md",
    "docs/guides/rescue.md",
    "docs/guides/tables.md",
    "docs/reference/exports.md",
    "docs/reference/wandb.md",
]
# Whoever tries these examples a second time, in the same directory, gets no error; with README, also the same output.
RUN_TWICE = ["README.md", "docs/guides/own-log.md"]


def docstrings():
    """The docstrings of the sources and of the stub, which repeats the compiled module's: see test_help.py."""
    for path in sorted(PACKAGE.rglob("*.py*")):
        if path.suffix in (".py", ".pyi"):
            module = ast.parse(path.read_text(encoding="utf-8"))
            for name, node in documented(module, ""):
                yield f"{path.relative_to(PACKAGE).as_posix()}: {name or 'module'}", ast.get_docstring(node) or ""


def documented(node, name):
    """A module, class or function under its qualified name, and everything defined in it."""
    yield name, node
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            yield from documented(child, f"{name}.{child.name}".lstrip("."))


EXAMPLES = [(name, text) for name, text in docstrings() if ">>>" in text]


def test_the_documentation_pages_contain_examples():
    names = {name for name, _ in EXAMPLES}
    assert names >= {"__init__.py: module", "_open.py: open", "_native.pyi: Reader", "_native.pyi: Reader.records"}


@pytest.mark.parametrize(("name", "text"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_every_example_in_the_docs_runs(name, text, tmp_path, monkeypatch):
    skip_without(name.partition(":")[0])
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(text, {"cordwood": cordwood}, name, None, 0)
    report = io.StringIO()
    result = doctest.DocTestRunner().run(test, out=report.write)
    assert result.attempted > 0
    assert result.failed == 0, report.getvalue()


@pytest.mark.parametrize("page", ["README.md", "docs/reference/rust.md"])
def test_rust_example_in_the_docs_is_also_a_doctest(page):
    """The examples of the crate's own README are doc tests."""
    (example,) = re.findall(r"```rust\n.*?```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert example in (ROOT / "rust/cordwood/README.md").read_text(encoding="utf-8")


def test_every_page_with_examples_is_tested():
    all_pages = ["README.md", *(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]
    with_examples = {page for page in all_pages if "```python\n" in (ROOT / page).read_text(encoding="utf-8")}
    assert with_examples == {*PAGES, *WITH_COMMANDS}


def skip_without(page):
    if package := NEEDS.get(page):
        pytest.importorskip(package, reason="make test-engines installs it")


@pytest.mark.parametrize("page", PAGES)
def test_running_the_examples_of_a_page_prints_the_output_shown(page, tmp_path, monkeypatch):
    skip_without(page)
    monkeypatch.chdir(tmp_path)
    if page == torch_substitute.PAGE:
        torch_substitute.installed(monkeypatch)
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```.*?```text\n(.*?)```", text, re.DOTALL)
    assert len(found) == text.count("```python\n")
    names = {}  # An example continues where the one before it ended.
    for code, expected in found:
        if "import grain\n" in code and not find_spec("grain"):
            continue
        assert printed_by(code, names) == expected
    if page in RUN_TWICE:
        names = {}
        for code, expected in found:
            assert printed_by(code, names) == expected or page != "README.md"


@pytest.mark.skipif(os.name == "nt", reason="the commands are those of a POSIX shell")
@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_code_and_commands_on_a_page_print_the_output_shown(page, tmp_path):
    transcript.environment(tmp_path / "bin")
    (tmp_path / "work").mkdir()
    assert pages.problems(ROOT / page, sys.executable, tmp_path / "work", tmp_path / "bin") == []


def test_every_page_with_commands_is_tested():
    all_pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    texts = {page: page.read_text(encoding="utf-8") for page in all_pages if page not in transcript.PAGES}
    with_commands = {page for page, text in texts.items() if any(s.language == "console" for s in pages.steps(text))}
    assert with_commands == {ROOT / page for page in WITH_COMMANDS}


def printed_by(code, names):
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(code, names)  # noqa: S102 - the page's own code
    return printed.getvalue()


DOCUMENTS = sorted(
    path
    for directory in ("", "conformance", "docs", "rust", "tests")
    for path in (ROOT / directory).glob("**/*.md" if directory else "*.md")
    if "target" not in path.parts
)


def prose(page):
    """The text of a page without its blocks of code."""
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def anchors(page):
    """The anchors of the headings, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_points_to_an_existing_file_or_heading(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if not re.match(r"https?:", target):
            name, _, anchor = target.partition("#")
            linked = page.parent / name if name else page
            assert linked.exists(), target
            assert not anchor or anchor in anchors(linked), target


def test_every_document_path_mentioned_in_the_sources_exists():
    """Comments, docstrings and messages name pages by their paths from the root."""
    for directory, suffix in (("python", "py*"), ("rust", "rs"), ("tests", "py"), ("tools", "py"), ("benches", "py")):
        for path in (ROOT / directory).rglob(f"*.{suffix}"):
            if "target" not in path.parts and path.suffix != ".pyc":
                for name in re.findall(r"\bdocs/[\w./-]+\.(?:md|svg)\b", path.read_text(encoding="utf-8")):
                    assert (ROOT / name).is_file(), f"{path}: {name}"


def test_code_on_a_page_fits_in_a_window_1200_pixels_wide():
    """A longer one scrolls, and its end is not seen. The lines of a record in hexadecimal digits are one each."""
    for page in (ROOT / "docs").rglob("*.md"):
        for code in re.findall(r"(?ms)^```(?:python|rust|sh|sql)\n(.*?)^```", page.read_text(encoding="utf-8")):
            long = [line for line in code.splitlines() if len(line) > 99 and not re.fullmatch("[0-9a-f ]+", line)]
            assert long == [], page


def test_the_index_lists_every_documentation_page():
    docs = ROOT / "docs"
    listed = set(re.findall(r"\]\(([\w/.-]+\.md)\)", (docs / "index.md").read_text(encoding="utf-8")))
    listed |= {f"cli/{name}" for name in re.findall(r"\]\(([\w-]+\.md)\)", (docs / "cli/index.md").read_text("utf-8"))}
    assert {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")} - listed == {"index.md"}


def test_every_message_on_the_troubleshooting_page_is_in_the_source():
    page = (ROOT / "docs/guides/troubleshooting.md").read_text(encoding="utf-8")
    ours = re.sub(r"(?ms)^## `wandb sync` fails\n.*?(?=^## )", "", page)
    messages = re.findall(r"(?m)^\| `([^`]+)` \|", ours)
    assert len(messages) > 20
    sources = [*(ROOT / "rust").glob("*/src/**/*.rs"), *(ROOT / "python/cordwood").rglob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in sources if path.name != "tests.rs"]
    assert [message for message in messages if not any(message in text for text in texts)] == []
