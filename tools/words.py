"""Count the words of prose in the docs.

    python tools/words.py               a line for each page, and the sum without docs/format
    python tools/words.py PAGE ...      these pages

A word of prose contains a letter and is outside blocks of code. A piece of inline code counts
as one word. Addresses of links and figures that a program writes do not count.
"""

import re
import sys
from pathlib import Path

DOCS = Path("docs")
BLOCK = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
FIGURES = re.compile(r"<!-- (?!end)[\w-]+ -->.*?<!-- (?:end|/[\w-]+) -->", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
INLINE = re.compile(r"`[^`\n]+`")
ADDRESS = re.compile(r"\]\([^)\s]*\)|<https?:[^>]*>|^\[[^]]+\]: \S+", re.MULTILINE)
WORD = re.compile(r"\S*[^\W\d_]\S*")


def words(text: str) -> int:
    """The words of prose in a Markdown page."""
    prose = INLINE.sub("code", COMMENT.sub("", FIGURES.sub("", BLOCK.sub("", text))))
    return len(WORD.findall(ADDRESS.sub("]", prose)))


def main(arguments: list[str]) -> None:
    """Print the counts."""
    pages = [Path(argument) for argument in arguments] or sorted(DOCS.rglob("*.md"))
    total = 0
    for page in pages:
        count = words(page.read_text(encoding="utf-8"))
        print(f"{count:7,}  {page}")
        if arguments or "format" not in page.parts:
            total += count
    print(f"{total:7,}  {'sum' if arguments else 'sum without docs/format'}")


if __name__ == "__main__":
    main(sys.argv[1:])
