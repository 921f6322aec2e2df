"""Looks for phrases that are not the field's terms, and for code that takes a message apart: `make lint` runs it.

Prose is Markdown outside code blocks, comments and docstrings, the names of tests, and the messages of the product:
string literals of several words. A line with the marker `phrase-ok` and a reason, for example
`# phrase-ok: a name of LevelDB`, is left out.

Two constructions are counted: clauses with *what* that are not questions, and *anything*, *nothing*, *something*. Both
avoid the noun that the reader needs: "the skipped bytes" says more than "what was skipped". A few are idioms, so there
is a limit for each 1,000 words, of all files together and of each file.

A message is for people: what a program needs of an error is an attribute of it. So no code of the product searches,
splits or shortens `str(error)`, `error.message`, or in Rust `error.to_string()`.

    python tools/phrases.py            the files that git tracks
    python tools/phrases.py --count    the constructions in each part of the repository, and in the worst files
    python tools/phrases.py FILE ...   these files
"""

import ast
import bisect
import io
import re
import subprocess
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

# A regular expression, and the replacement.
PHRASES = [
    # Except for unsafe code, which is sound.
    (r"sound(?! code)", "valid"),
    (r"right checksums?", "valid checksum"),
    (r"(tell|tells|told|telling) (of|about)", "report"),
    (r"(has|have|had|been|is|are|was|it is) told", "reported"),
    (r"(cannot|can not|could not|can) be told", "cannot be determined, distinguished"),
    (r"f(ound|inds|ind|inding) (it )?out", "detected"),
    (r"quick ways?", "fast path"),
    (r"one (behind|after) the other", "consecutive"),
    (r"(goes|go|going|gone) on with", "continue, resume, append to"),
    (r"(goes|go|going) on (behind|after|at)", "continue"),
    (r"stands?(?! for| in for| alone)", "is"),
    (r"(?<!row of )stood", "was"),
    (r"stretch(es)?", "range, region, part"),
    (r"handed out", "returned"),
    (r"hand(s|ed)? out", "return"),
    (r"no good fragments?", "not a valid fragment"),
    (r"good fragments?", "valid fragment"),
    (r"given up", "abandoned, released"),
    (r"(?<!one )(?<!a )pass(es|ed|ing)? over", "skip"),
    (r"moved? over", "advanced over"),
    (r"summed", "checksummed"),
    (r"the wish for", "a request for"),
    (r"for ever", "forever"),
    (r"in silence|without a word", "silently"),
    (r"nobody (knows|hears)", "is not known, is not reported"),
    (r"so few bytes|so many bytes|so many of them", "this many bytes"),
    (r"that there (is|are)(?! no)", "that exist; or nothing"),
    (r"looked for, or", "searched for, or"),
    (r"anew", "again"),
    (r"so (is|does) it|so it (is|does) (also|too|with)", "also; likewise"),
    (r"the judge", "the oracle"),
    (r"(LevelDB|Pebble|RocksDB|Python|the engine)'s own and not", "plain words"),
    (r"of (Python|Pebble|LevelDB|RocksDB)'s(?= (that|which|are|is)\b|[.,;:)])", "a Python ..., from Python"),
    (r"of the engine's own", "engine metadata"),
    (r"it is no longer than so", "at most"),
    (r"of another day", "later"),
    (r"a thing of", "plain words"),
    (r"once more", "again"),
    (r"in one go", "at once"),
    (r"from memory, it lost|was at hand|a prototype in", "what holds now, not how it came to be"),
]

CONSTRUCTIONS = {
    "what": re.compile(r"\bwhat(?:ever)?\b(?![^.!?]*\?)", re.IGNORECASE),
    "anything, nothing, something": re.compile(r"\b(?:any|no|some)thing\b", re.IGNORECASE),
}
# For each 1,000 words; a file may have a few more.
LIMIT = 1.5
FILE_LIMIT = 6
FILE_LIMIT_MIN = 5

# The changelog is history.
LEFT_OUT = ("CHANGELOG.md", "tools/phrases.py")

MARKER = "phrase-ok"
# One search for all of them, in lower case, is faster than one that ignores case.
PATTERN = re.compile(rf"\b(?:{'|'.join(phrase.lower() for phrase, _ in PHRASES)})\b")
CODE = re.compile(r"`[^`]*`|\[[^\]]*\]\([^)]*\)|https?://\S+")


def rust_prose(text: str) -> Iterator[tuple[int, str]]:
    """The comments of a Rust file and the names of its tests, by line, without the code in examples."""
    is_code = is_test = False
    for number, line in enumerate(text.splitlines(), 1):
        name = re.match(r"\s*(?:pub )?fn (\w+)", line)
        if name and is_test:
            yield from ((number, ""), (number, name[1].replace("_", " ")), (number, ""))
        is_test = "#[test]" in line or (is_test and not name)
        comment = re.search(r"(?:^|\s)//[/!]?(.*)", line)
        if not comment:
            is_code = False
            yield number, ""
        elif comment[1].strip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            yield number, comment[1]


def python_prose(text: str) -> Iterator[tuple[int, str]]:
    """The comments, docstrings and names of tests of a Python file, by line."""
    lines = {
        token.start[0]: token.string.lstrip("#")
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }
    sources = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            source = sources[node.lineno - 1 : node.end_lineno]
            lines |= {node.lineno + n: line.replace('"""', "") for n, line in enumerate(source)}
    for number, line in enumerate(sources, 1):
        if name := re.match(r"\s*(?:async )?def (test_\w+)", line):
            yield from ((number, name[1].replace("_", " ")), (number, ""))
    previous = 0
    for number in sorted(lines):
        if number > previous + 1:
            yield number - 1, ""
        yield number, lines[number]
        previous = number


def markdown_prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a Markdown file that are not in a block of code."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
            yield number, ""
        elif not is_code:
            yield number, line


PROSE = {".rs": rust_prose, ".py": python_prose, ".pyi": python_prose, ".md": markdown_prose}


def messages(path: Path) -> Iterator[str]:
    """The string literals of several words in a file of the product."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py" and str(path).startswith("python/"):
        tree = ast.parse(text)
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield node.value
    elif is_rust_of_the_product(path):
        code = re.sub(r"^\s*//.*", "", text.partition("#[cfg(test)]")[0], flags=re.MULTILINE)
        for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', code, re.DOTALL):
            yield re.sub(r"\\\n\s*", "", literal)


def is_rust_of_the_product(path: Path) -> bool:
    return path.suffix == ".rs" and "/src/" in str(path) and not re.search(r"tests?\.rs$|/fuzz/|^benches/", str(path))


def part_of(path: Path) -> str:
    """The part of the repository, for the counts."""
    if path.suffix == ".md":
        return "tests" if path.parts[0] == "tests" else "docs"
    return "rust" if is_rust_of_the_product(path) else "python" if path.parts[0] == "python" else "tests"


class Counts:
    """The words of some texts, and how often each construction occurs in them."""

    def __init__(self) -> None:
        self.words = 0
        self.found = dict.fromkeys(CONSTRUCTIONS, 0)

    def add(self, text: str) -> None:
        """Counts a text too."""
        text = CODE.sub(" ", text)
        self.words += len(re.findall(r"[A-Za-z][A-Za-z'-]*", text))
        for name, pattern in CONSTRUCTIONS.items():
            self.found[name] += len(pattern.findall(text))

    def __str__(self) -> str:
        rates = (f"{name}: {count} ({1000 * count / max(self.words, 1):.2f})" for name, count in self.found.items())
        return f"{self.words:,} words; {'; '.join(rates)}"

    def too_many(self, limit: float, least: int = 0) -> list[str]:
        """The constructions of which there are more than `limit` for each 1,000 words, and more than `least`."""
        return [name for name, count in self.found.items() if count > max(limit * self.words / 1000, least)]


def counts(paths: list[Path]) -> dict[Path | str, Counts]:
    """The counts of each file, of each part, and of everything."""
    counted: dict[Path | str, Counts] = defaultdict(Counts)
    for path in paths:
        prose = "\n".join(line for _, line in PROSE[path.suffix](path.read_text(encoding="utf-8")))
        said = "\n".join(text for text in messages(path) if " " in text)
        for key in (path, part_of(path), "all"):
            counted[key].add(prose)
        for key in (path, "messages", "all"):
            counted[key].add(said)
    return counted


def hits(path: Path) -> Iterator[tuple[int, str, str]]:
    """The phrases found in a file: the line, the phrase and the replacement."""
    text = path.read_text(encoding="utf-8")
    starts, numbers, joined = [], [], ""
    for number, line in PROSE[path.suffix](text):
        starts.append(len(joined))
        numbers.append(number)
        # An empty line keeps a phrase from spanning paragraphs.
        joined += line.strip() + " " if line.strip() else "\n"
    joined = CODE.sub(lambda code: "\0" * len(code[0]), joined)
    marked = {number for number, line in enumerate(text.splitlines(), 1) if MARKER in line}
    lowered = joined.lower()
    for match in PATTERN.finditer(lowered):
        number = numbers[bisect.bisect_right(starts, match.start()) - 1]
        if number not in marked:
            at, end = match.span()
            yield number, joined[at:end], instead_of(lowered, at, end)


def instead_of(text: str, at: int, end: int) -> str:
    """The replacement for the phrase between these positions."""
    for phrase, instead in PHRASES:
        match = re.compile(rf"\b(?:{phrase.lower()})\b").match(text, at)
        if match and match.end() == end:
            return instead
    raise AssertionError(text[at:end])


# Methods that take a text apart, in Python and in Rust.
PYTHON_APART = re.compile(
    r"endswith|r?find|r?index|r?partition|remove\w+|replace|r?split|splitlines|startswith|[lr]?strip"
)
RUST_APART = re.compile(
    r"(?:\bmessage|\.to_string\(\))\s*"
    r"\.(?:contains|ends_with|find|replacen?|r?splitn?(?:_once)?|starts_with|strip_\w+|trim\w*)\("
)


def taken_apart(path: Path) -> Iterator[int]:
    """The lines of a file of the product that take a message apart."""
    text = path.read_text(encoding="utf-8")
    numbers = []
    if is_rust_of_the_product(path):
        code = re.sub(r"//.*", lambda comment: " " * len(comment[0]), text.partition("#[cfg(test)]")[0])
        numbers = [code.count("\n", 0, match.end()) + 1 for match in RUST_APART.finditer(code)]
    elif path.suffix == ".py" and str(path).startswith("python/"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                is_regex = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
                is_apart = is_regex or PYTHON_APART.fullmatch(node.func.attr)
                if is_apart and any(map(is_message, [*(node.args if is_regex else []), node.func.value])):
                    numbers.append(node.end_lineno or node.lineno)
    lines = text.splitlines()
    yield from (number for number in numbers if MARKER not in lines[number - 1])


def is_message(node: ast.expr) -> bool:
    """Whether the expression is the text of an error or of another object."""
    match node:
        case ast.Call(func=ast.Name(id="str"), args=[_]) | ast.Name(id="message"):
            return True
        case ast.Attribute(attr="message" | "strerror") | ast.Subscript(value=ast.Attribute(attr="args")):
            return True
    return False


def main() -> int:
    """Prints the findings, and fails if there are any."""
    tracked = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.splitlines()
    arguments = [argument for argument in sys.argv[1:] if argument != "--count"]
    names = arguments or [name for name in tracked if name not in LEFT_OUT]
    paths = [path for path in map(Path, names) if path.suffix in PROSE and path.exists()]
    counted = counts(paths)
    if "--count" in sys.argv:
        for part in (key for key in counted if isinstance(key, str)):
            print(f"{part}: {counted[part]}")
    count = 0
    for path in paths:
        for number, phrase, instead in hits(path):
            count += 1
            print(f"{path}:{number}: {phrase!r}: say {instead!r}")
        for number in taken_apart(path):
            count += 1
            print(f"{path}:{number}: a message is taken apart: use the attributes of the error")
        for name in counted[path].too_many(FILE_LIMIT, FILE_LIMIT_MIN):
            count += 1
            print(f"{path}: too often {name}, name the noun: {counted[path]}")
    for name in [] if arguments else counted["all"].too_many(LIMIT):
        count += 1
        print(f"in all files too often {name}, name the noun: {counted['all']}")
    print(f"{count} found" if count else "no phrase found")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
