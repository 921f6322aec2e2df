"""Checks the built site.

Every link within it leads to a page and a place on it, no page loads from another host, and the reference has all
public names and no private ones. `make docs` runs it.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser loads by itself, and the attribute that says from where.
LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "object": "data",
    "link": "href",
}


class Page(HTMLParser):
    """The ids, the links and the loaded files of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_data(self, data: str) -> None:
        """Notes a text: the parser calls it."""
        self.text += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes a tag: the parser calls it."""
        named = {name: value or "" for name, value in attrs}
        if "id" in named:
            self.ids.add(named["id"])
        if tag == "a" and "href" in named:
            self.links.add(named["href"])
        # The address of the page itself is not loaded.
        if named.get(LOADED.get(tag, "")) and named.get("rel") != "canonical":
            self.loaded.add(named[LOADED[tag]])


PACKAGE = Path(__file__).parent.parent / "python" / "cordwood"


def public_names(package: Path) -> Iterator[str]:
    """The full names in the `__all__` of each public module of a package, or else those that it defines."""
    for path in sorted(package.rglob("*.py")):
        module = [package.name, *path.relative_to(package).with_suffix("").parts]
        module = module[:-1] if module[-1] == "__init__" else module
        if any(part.startswith("_") or part == "cli" for part in module):
            continue
        listed: list[str] = []
        defined: list[str] = []
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", node)
            name = getattr(target, "id", getattr(target, "name", "_"))
            if name == "__all__":
                listed += ast.literal_eval(node.value)
            defined.append(name)
        yield from (".".join([*module, name]) for name in listed or defined if not name.startswith("_"))


def problems(site: Path, names: Iterable[str] = ()) -> list[str]:
    """The problems of a site whose reference must have these names."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        private = re.findall(r"\bcordwood\._\w[\w.]*|\b_[A-Z]\w*[a-z]\w*\b", page.text if "api/" in name else "")
        found += [f"{name} has a private name: {each}" for each in sorted(set(private))]
        for link in sorted(page.links | page.loaded):
            parts = urlsplit(link)
            if parts.scheme == "data" or (parts.scheme and link in page.links - page.loaded):
                continue
            if parts.scheme or parts.netloc:
                found.append(f"{name} loads from another host: {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                found.append(f"{name} links to a file that does not exist: {link}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                found.append(f"{name} links to a place that does not exist: {link}")
    ids = {each for path, page in pages.items() if "api/" in path.relative_to(site).as_posix() for each in page.ids}
    found += [f"the reference does not have {name}" for name in names if name not in ids]
    for path in sorted(site.rglob("*.css")):
        urls = re.findall(r"(?:url\(|@import\s+)[\"']?((?:https?:)?//[^\"')]+)", path.read_text(encoding="utf-8"))
        found += [f"{path.relative_to(site).as_posix()} loads from another host: {url}" for url in urls]
    return found if pages else [f"{site} has no page"]


if __name__ == "__main__":
    found = problems(Path(sys.argv[1]).resolve(), public_names(PACKAGE))
    sys.exit("".join(f"site-check: {problem}\n" for problem in found) or 0)
