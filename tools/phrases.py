"""Look for phrases that are not the field's terms, and for code that takes a message apart: `make lint` runs it.

Prose is comments in Rust, comments and docstrings in Python, and Markdown outside code blocks.
A line with the marker `phrase-ok` and a reason, for example `# phrase-ok: behind a lock`, is left
out. What a program prints (string literals, and the sessions in tests/cli) is left to its tests.

A message is for people: what a program needs of an error is an attribute of it. So no code of the product searches,
splits or shortens `str(error)`, `error.message`, or in Rust `error.to_string()`.

    python tools/phrases.py            the files that git tracks
    python tools/phrases.py FILE ...   these files
"""

import ast
import bisect
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

# A regular expression, and what to say instead.
PHRASES = [
    (r"behind(?! (a|the) (lock|trait|flag|feature))", "after"),
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

# A changelog is history; the sessions in tests/cli contain what the program prints.
LEFT_OUT = ("CHANGELOG.md", "tests/cli/")

MARKER = "phrase-ok"
# One search for all of them, in lower case, is faster than one that ignores case.
PATTERN = re.compile(rf"\b(?:{'|'.join(phrase.lower() for phrase, _ in PHRASES)})\b")
CODE = re.compile(r"`[^`]*`|\[[^\]]*\]\([^)]*\)|https?://\S+")


def rust_prose(text: str) -> Iterator[tuple[int, str]]:
    """The comments of a Rust file, by line, without the code in their examples."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.search(r"(?:^|\s)//[/!]?(.*)", line)
        if not comment:
            is_code = False
            yield number, ""
        elif comment[1].strip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            yield number, comment[1]


def python_prose(text: str) -> Iterator[tuple[int, str]]:
    """The comments and docstrings of a Python file, by line."""
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


def hits(path: Path) -> Iterator[tuple[int, str, str]]:
    """The phrases found in a file: the line, the phrase and what to say instead."""
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
    """What to say instead of the phrase between these positions."""
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
    if path.suffix == ".rs" and "/src/" in str(path) and not re.search(r"tests?\.rs$|/fuzz/", str(path)):
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
    """Print what was found, and fail if that is anything."""
    tracked = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.splitlines()
    left_out = (*LEFT_OUT, "tools/phrases.py")
    names = sys.argv[1:] or [name for name in tracked if not name.startswith(left_out)]
    count = 0
    for path in map(Path, names):
        if path.suffix in PROSE and path.exists():
            for number, phrase, instead in hits(path):
                count += 1
                print(f"{path}:{number}: {phrase!r}: say {instead!r}")
            for number in taken_apart(path):
                count += 1
                print(f"{path}:{number}: a message is taken apart: use the attributes of the error")
    print(f"{count} found" if count else "no phrase found")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
