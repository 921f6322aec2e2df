"""Says what prevents a release of this commit, under the tag that is named, if one is: `make release-check`."""

import re
import sys
from pathlib import Path

from published import PACKAGE, ROOT, tracked

WORKSPACES = ["", "benches/compare/", "benches/durable/", "rust/exhaustive/", "rust/fuzz/"]
"""The directories with a lock file."""

PAGES = re.compile(r"(?!CHANGELOG|RELEASING|tools/|tests/|benches/).*\.(md|py|pyi|rs|toml)")
"""The files whose words users see. CHANGELOG.md has a check of its own."""

EARLY = re.compile(
    r"\bnot\W+(released\W+yet|yet\W+released)\b"
    r"|(?-i:\bCHECKOUT\b)"
    r"|\buntil\W+(its|the)\W+first\W+release\b"
    r"|\breleased?\b[^.]*\buntil\W+then\b",
    re.IGNORECASE,
)
"""Words that are true only before the first release. A sentence may continue on the next line of a comment."""


def problems(tag: str | None) -> list[str]:
    version = PACKAGE["version"]
    found = [
        f"Cargo.toml names no {part} of the project, only {PACKAGE[part]}, which stands for one"
        for part in ("repository", "homepage")
        if ".invalid/" in PACKAGE[part]
    ]
    if tag not in {None, f"v{version}"}:
        found.append(f"the tag is {tag}, but the version in Cargo.toml is {version}")
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", text_of("CHANGELOG.md"), re.MULTILINE):
        found.append(f"CHANGELOG.md has no section `## {version} (YYYY-MM-DD)`")
    for directory in WORKSPACES:
        if f'name = "cordwood-log"\nversion = "{version}"\n' not in text_of(f"{directory}Cargo.lock"):
            update = f"cargo update --workspace --manifest-path {directory}Cargo.toml"
            found.append(f"{directory}Cargo.lock has another version than {version}: run `{update}`")
    found += early_words(ROOT, tracked())
    if "@OWNER" in text_of(".github/CODEOWNERS"):
        found.append(".github/CODEOWNERS names no account, only @OWNER, which stands for one")
    # One in .invalid stands for an address that the project does not have yet.
    address = re.compile(r"<[\w.+-]+@[\w.-]+(?<!\.invalid)>")
    unnamed = [name for name in ("SECURITY.md", "CODE_OF_CONDUCT.md") if not address.search(text_of(name))]
    found += [f"{name} names no address to write to, or only one in .invalid, which stands for one" for name in unnamed]
    return found


def early_words(directory: Path, names: list[str]) -> list[str]:
    """Where these files of the directory say what is true only before the first release."""
    found = []
    for name in filter(PAGES.fullmatch, names):
        text = (directory / name).read_text(encoding="utf-8")
        for early in EARLY.finditer(text):
            line = text.count("\n", 0, early.start()) + 1
            words = " ".join(early[0].split())
            found.append(f"{name}:{line} says {words!r}, which is true only before the first release")
    return found


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    found = problems(sys.argv[1] if len(sys.argv) > 1 else None)
    sys.exit("".join(f"release-check: {problem}\n" for problem in found) or 0)
