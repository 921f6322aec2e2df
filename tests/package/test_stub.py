"""`tools/stub.py` keeps the types in a stub, and replaces the docstrings by those of the module."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

spec = importlib.util.spec_from_file_location("stub", ROOT / "tools/stub.py")
stub = importlib.util.module_from_spec(spec)
spec.loader.exec_module(stub)

TYPES = """\
@final
class Reader:
    '''Old text.

    More of it.
    '''

    @property
    def ok(self) -> bool: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def tell(self) -> int:
        '''Old text.'''

@overload
def scan(source: Source) -> Scan: ...
@overload
def scan(
    source: Source, *, decode: str
) -> DecodedScan: ...
"""
DOCSTRINGS = {
    ("Reader",): "A reader.",
    ("Reader", "ok"): "Whether no damage was found.",
    ("Reader", "tell"): "The position:\n\n>>> print('\\n')",
    ("scan",): "Returns a table.",
}
EXPECTED = """\
@final
class Reader:
    \"""A reader.\"""

    @property
    def ok(self) -> bool:
        \"""Whether no damage was found.\"""
    def __iter__(self) -> Iterator[bytes]: ...
    def tell(self) -> int:
        r\"""The position:

        >>> print('\\n')
        \"""

@overload
def scan(source: Source) -> Scan: ...
@overload
def scan(
    source: Source, *, decode: str
) -> DecodedScan:
    \"""Returns a table.\"""
"""


def test_stub_update_replaces_outdated_docstrings_and_adds_missing_ones(monkeypatch):
    monkeypatch.setattr(stub, "docstring", DOCSTRINGS.get)
    assert stub.with_docstrings(TYPES) == EXPECTED
    assert stub.with_docstrings(EXPECTED) == EXPECTED


def test_docstrings_of_python_classes_are_not_copied_into_the_stub():
    assert stub.docstring(("Reader", "__iter__")) is None
    assert stub.docstring(("Reader", "__new__")) is None
    assert stub.docstring(("Scan", "__arrow_c_stream__")).startswith("Returns the table as an Arrow stream")


def test_a_docstring_that_is_only_in_the_stub_is_reported(monkeypatch):
    monkeypatch.setattr(stub, "docstring", lambda path: "" if path == ("Reader", "tell") else None)
    with pytest.raises(SystemExit, match=r"Reader\.tell has a docstring in the stub"):
        stub.with_docstrings(TYPES)
