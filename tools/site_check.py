"""Checks the built site.

Every link within it leads to a page and a place on it, no page loads from another host, and the reference has no
private names. `make docs` runs it.
"""

import re
import sys
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


def problems(site: Path) -> list[str]:
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
    for path in sorted(site.rglob("*.css")):
        urls = re.findall(r"(?:url\(|@import\s+)[\"']?((?:https?:)?//[^\"')]+)", path.read_text(encoding="utf-8"))
        found += [f"{path.relative_to(site).as_posix()} loads from another host: {url}" for url in urls]
    return found if pages else [f"{site} has no page"]


if __name__ == "__main__":
    found = problems(Path(sys.argv[1]).resolve())
    sys.exit("".join(f"site-check: {problem}\n" for problem in found) or 0)
