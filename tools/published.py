"""Copies the repository's files to a directory in the form in which they are published: `make sdist`.

A README is also shown where its neighbours are not, on PyPI and on crates.io. So its links to them are made absolute:
to the repository that Cargo.toml names, at the version that it names. Doc comments of the crates are shown on docs.rs:
the name of a page in them, such as `docs/format/reading.md`, becomes a link of the same kind. And pyproject.toml names
the pages about the project, which PyPI shows beside the README.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
PACKAGE = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
READMES = ["README.md", "rust/cordwood/README.md"]
CRATES = ("rust/cordwood/src/", "rust/payload/src/")
PICTURES = (".svg", ".png")


def absolute(text: str, directory: str, repository: str, version: str, *, kept: str | None = None) -> str:
    """A page of `directory`, with absolute links in place of relative ones; not in code, and not those into `kept`."""

    def link(found: re.Match[str]) -> str:
        target = found[1]
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        name, hash_mark, anchor = target.partition("#")
        parts: list[str] = []
        for part in PurePosixPath(directory, name).parts:
            parts = parts[:-1] if part == ".." else [*parts, part]
        if kept is not None and parts[0] == kept:
            return found[0]
        view = "raw" if name.endswith(PICTURES) else "blob"
        return f"]({repository}/{view}/v{version}/{'/'.join(parts)}{hash_mark}{anchor})"

    pieces = re.split(r"(```.*?```)", text, flags=re.DOTALL)
    return "".join(piece if piece.startswith("```") else re.sub(r"\]\(([^)\s]+)\)", link, piece) for piece in pieces)


def with_links(code: str, repository: str, version: str) -> str:
    """The Rust code, with a link to each page of docs/ that a doc comment names."""
    link = rf"[`\1`]({repository}/blob/v{version}/\1)"
    name = r"(?<!\[)`(docs/[^`]+\.md)`"
    return re.sub(r"^ *//[/!].*$", lambda line: re.sub(name, link, line[0]), code, flags=re.MULTILINE)


def with_urls(pyproject: str, homepage: str, repository: str) -> str:
    """The text of pyproject.toml, with the pages about the project."""
    dynamic = 'dynamic = ["version", "urls"]'
    if pyproject.count(dynamic) != 1:
        raise ValueError(f"pyproject.toml does not say {dynamic}")
    urls = {
        "Documentation": homepage,
        "Source": repository,
        "Issues": f"{repository}/issues",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
    }
    named = "".join(f'urls.{name} = "{url}"\n' for name, url in urls.items())
    return pyproject.replace(dynamic, f'{named}dynamic = ["version"]')


def tracked() -> list[str]:
    """The files of the repository, and those that will be in its next commit."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return sorted({name for name in names if name and (ROOT / name).exists()})


def publish(directory: Path) -> None:
    """Copies them, and LICENSE-THIRD-PARTY, which is no file of the repository.

    The copy is a git repository, since maturin asks git for the files of an sdist.
    """
    shutil.rmtree(directory, ignore_errors=True)
    for name in [*tracked(), "LICENSE-THIRD-PARTY"]:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, directory / name, follow_symlinks=False)
    address = PACKAGE["repository"], PACKAGE["version"]
    for name in READMES:
        text = (ROOT / name).read_text(encoding="utf-8")
        (directory / name).write_text(absolute(text, str(PurePosixPath(name).parent), *address), encoding="utf-8")
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    text = with_urls(text, PACKAGE["homepage"], PACKAGE["repository"])
    (directory / "pyproject.toml").write_text(text, encoding="utf-8")
    for name in tracked():
        if name.startswith(CRATES):
            text = (ROOT / name).read_text(encoding="utf-8")
            (directory / name).write_text(with_links(text, *address), encoding="utf-8")
    for command in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *command], cwd=directory, check=True)


if __name__ == "__main__":
    publish(Path(sys.argv[1]))
