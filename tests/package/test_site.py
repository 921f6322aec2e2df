"""The tools that publish: they make links absolute, find broken ones, complete a page, and refuse a release."""

import gzip
import re
import sys
import tomllib
from base64 import b64decode, b64encode
from hashlib import sha256
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def tools(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])


def test_published_readme_has_absolute_links_and_unchanged_code():
    from published import absolute

    links = "[![p](../a/p.svg)](../a/p.md#x) [h](#h) [o](https://o.example) [s](SUB/s.rs)"
    text = f"{links}\n```text\n[c](c.md)\n```\n[e](e.md)"
    assert absolute(text, "rust/core", "https://r.example/r", "1.2.3") == (
        "[![p](https://r.example/r/raw/v1.2.3/rust/a/p.svg)](https://r.example/r/blob/v1.2.3/rust/a/p.md#x) [h](#h)"
        " [o](https://o.example) [s](https://r.example/r/blob/v1.2.3/rust/core/SUB/s.rs)\n```text\n[c](c.md)\n```\n"
        "[e](https://r.example/r/blob/v1.2.3/rust/core/e.md)"
    )


def test_doc_comments_are_published_with_links_to_pages():
    from published import with_links

    linked = "[`docs/design.md`](https://r.example/r/blob/v1.2.3/docs/design.md)"
    code = "    /// `docs/design.md`, `docs/design.md`.\n//! `docs/design.md`\n"
    unchanged = "// `docs/design.md`\nlet x = 1; // `docs/design.md`\n"
    assert with_links(code + unchanged, "https://r.example/r", "1.2.3") == (
        f"    /// {linked}, {linked}.\n//! {linked}\n{unchanged}"
    )


def test_a_published_package_links_to_the_pages_of_the_project():
    from published import with_urls

    text = with_urls((ROOT / "pyproject.toml").read_text(encoding="utf-8"), "https://s.example", "https://r.example/r")
    project = tomllib.loads(text)["project"]
    assert project["urls"] == {
        "Documentation": "https://s.example",
        "Source": "https://r.example/r",
        "Issues": "https://r.example/r/issues",
        "Changelog": "https://r.example/r/blob/main/CHANGELOG.md",
    }
    assert project["dynamic"] == ["version"]


def test_every_page_named_in_a_doc_comment_becomes_a_link():
    from published import CRATES, with_links

    paths = [path for directory in CRATES for path in (ROOT / directory).rglob("*.rs")]
    comments = re.findall(r"^ *//[/!].*$", "\n".join(path.read_text(encoding="utf-8") for path in paths), re.MULTILINE)
    published = with_links("\n".join(comments), "https://r.example/r", "1")
    assert with_links(published, "https://r.example/r", "1") == published
    link = r"\[`(docs/[^`]+)`\]\(https://[^)]+\)"
    assert len(re.findall(link, published)) > 20
    assert re.findall(r"docs/[\w/-]+\.md", re.sub(link, "", published)) == []


def test_a_page_of_the_site_keeps_its_links_to_other_pages():
    from published import absolute

    text = "[a](../a.md) [b](../../Cargo.toml)"
    assert absolute(text, "docs/x", "https://r", "1", kept="docs") == "[a](../a.md) [b](https://r/blob/v1/Cargo.toml)"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="other.html#place">', None),
        ('<a href="https://elsewhere.example/">', None),
        ('<img src="data:image/png;base64,">', None),
        ('<a href="none.html">', "a file that does not exist: none.html"),
        ('<a href="other.html#none">', "a place that does not exist: other.html#none"),
        ('<a href="#none">', "a place that does not exist: #none"),
        ('<img src="none.png">', "a file that does not exist: none.png"),
        ('<script src="https://elsewhere.example/a.js"></script>', "another host: https://elsewhere.example/a.js"),
        ('<link rel="canonical" href="https://elsewhere.example/page.html">', None),
        ('<link rel="stylesheet" href="//elsewhere.example/a.css">', "another host: //elsewhere.example/a.css"),
    ],
)
def test_the_site_check_reports_broken_links_and_external_files(body, problem, tmp_path):
    from site_check import problems

    (tmp_path / "page.html").write_text(body)
    (tmp_path / "other.html").write_text('<p id="place">')
    found = problems(tmp_path)
    assert [text.partition(" links to ")[2] or text.partition(" loads from ")[2] for text in found] == (
        [problem] if problem else []
    )


def test_the_site_check_reports_a_private_name_in_the_api_reference(tmp_path):
    from site_check import problems

    for directory in ("api", "guides"):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / "page.html").write_text(
            "<p>cordwood._native.<b>Reader</b>, <i>_Object</i>, _RAW, an_Object"
        )
    text = "api/page.html has a private name: "
    assert problems(tmp_path) == [f"{text}_Object", f"{text}cordwood._native.Reader"]


def test_the_site_check_reports_a_public_name_that_the_api_reference_lacks(tmp_path):
    from site_check import problems, public_names

    package = tmp_path / "cordwood"
    package.mkdir()
    (package / "__init__.py").write_text('__all__ = ["__version__", "open"]\n__all__ += ["stat"]\n')
    (package / "types.py").write_text("import os\nLEN = 1\nT: int = 2\n_T = 3\nclass Stat: ...\ndef _f(): ...\n")
    for private in ("_open.py", "cli.py"):
        (package / private).write_text('__all__ = ["other"]')
    names = list(public_names(package))
    assert names == ["cordwood.open", "cordwood.stat", "cordwood.types.LEN", "cordwood.types.T", "cordwood.types.Stat"]
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "page.html").write_text(
        '<p id="cordwood.open"><p id="cordwood.types.LEN"><p id="cordwood.types.Stat">'
    )
    lacks = "the reference does not have cordwood."
    assert problems(tmp_path, names) == [f"{lacks}stat", f"{lacks}types.T"]


def test_the_site_check_reports_a_style_sheet_that_loads_files_from_another_host(tmp_path):
    from site_check import problems

    (tmp_path / "page.html").write_text("")
    (tmp_path / "style.css").write_text("@font-face { src: url(https://elsewhere.example/f.woff2) }")
    assert problems(tmp_path) == ["style.css loads from another host: https://elsewhere.example/f.woff2"]


def test_a_release_with_the_wrong_address_or_version_is_rejected(monkeypatch):
    import release_check

    addresses = {"repository": "https://repository.invalid/cordwood", "homepage": "https://site.invalid/cordwood"}
    monkeypatch.setattr(release_check, "PACKAGE", {"version": "1.2.3", **addresses})
    found = release_check.problems("v1.2.2")
    for address in addresses.values():
        assert [problem for problem in found if address in problem]
    assert [problem for problem in found if "the tag is v1.2.2" in problem]
    locked = [problem.partition(" ")[0] for problem in found if "Cargo.lock has another version than 1.2.3" in problem]
    directories = "", "benches/compare/", "benches/durable/", "rust/exhaustive/", "rust/fuzz/"
    assert locked == [f"{directory}Cargo.lock" for directory in directories]


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md"])
@pytest.mark.parametrize(
    ("address", "is_refused"),
    [
        ("", True),
        ("<name@cordwood.invalid>", True),
        ("<name@mail.invalid.example>", False),
        ("<a.b+c@d.example>", False),
    ],
)
def test_a_release_without_a_contact_address_is_rejected(name, address, is_refused, monkeypatch):
    import release_check

    text_of = release_check.text_of
    monkeypatch.setattr(release_check, "text_of", lambda each: address if each == name else text_of(each))
    found = [problem for problem in release_check.problems(None) if problem.startswith(f"{name} names no address")]
    assert len(found) == is_refused


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("README.md", "# cordwood\n\nIt is not released yet.\n", 3),
        ("docs/index.md", "Until its first release, install it from a checkout.\n", 1),
        ("docs/guides/tables.md", "It means the released package: until then, build it.\n", 1),
        ("rust/core/README.md", "cargo add --path CHECKOUT/rust/core\n", 1),
        ("rust/core/src/lib.rs", "//! A log.\n//! The crate is not yet\n//! released.\n", 2),
        ("python/cordwood/errors.py", '"""Until the first\nrelease, there are none."""\n', 1),
        ("pyproject.toml", "# not released yet\n", 1),
        ("docs/design.md", "The lock is not released for each record. Until then, it waits in a checkout.\n", None),
        ("CHANGELOG.md", "## 0.1.0 (not yet released)\n", None),
        ("RELEASING.md", "Before the first release, not released yet.\n", None),
    ],
)
def test_the_release_check_reports_pre_release_wording(name, text, line, tmp_path):
    from release_check import early_words

    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    found = early_words(tmp_path, [name])
    assert [problem.partition(" says ")[0] for problem in found] == ([f"{name}:{line}"] if line else [])


def test_a_release_with_pre_release_wording_is_rejected(monkeypatch):
    import release_check

    monkeypatch.setattr(release_check, "early_words", lambda directory, names: [f"{len(names) > 100} in {directory}"])
    assert f"True in {ROOT}" in release_check.problems(None)


@pytest.mark.parametrize("module", [None, b"\0asm module"])
def test_the_log_reading_page_runs_only_its_own_scripts(tmp_path, monkeypatch, module):
    import try_page

    monkeypatch.setattr(try_page, "MODULE", tmp_path / "module.wasm")
    if module:
        (tmp_path / "module.wasm").write_bytes(module)
    page = tmp_path / "try.html"
    page.write_text(f"<head></head><script>theme()</script><script src='a.js'></script>{try_page.PLACE}")
    try_page.complete(page)
    text = page.read_text(encoding="utf-8")

    rules = re.match(r'<head><meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)[1].split("; ")
    assert {"default-src 'none'", "connect-src 'none'", "worker-src blob:"} <= set(rules)
    scripts = [b"theme()", *([(ROOT / "rust/web/page.js").read_bytes()] if module else [])]
    hashes = {f"'sha256-{b64encode(sha256(script).digest()).decode()}'" for script in scripts}
    assert set(next(rule for rule in rules if rule.startswith("script-src")).split()) == {
        *("script-src", "'self'", "'wasm-unsafe-eval'"),
        *hashes,
    }
    packed = re.search(r'id="try-module">([^<]*)<', text)
    assert (packed and gzip.decompress(b64decode(packed[1]))) == module
    assert ("without the module" in text) == (module is None)
