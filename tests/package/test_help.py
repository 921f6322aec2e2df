"""The answers of `help`, `inspect.signature` and `typing.get_type_hints` about the public names.

The stub repeats the text of the compiled module: `make types` compares the two.
"""

import enum
import inspect
import pydoc
import re
import typing
from importlib import import_module
from importlib.util import find_spec
from types import BuiltinFunctionType, FunctionType

import pytest

import cordwood

MODULES = [
    "cordwood",
    "cordwood.compat.appengine",
    "cordwood.compat.ccl",
    "cordwood.compat.dfindexeddb",
    "cordwood.compat.leveldb_export",
    "cordwood.compat.wandb",
    "cordwood.errors",
    "cordwood.payload",
    "cordwood.payload.entity",
    "cordwood.payload.version_edit",
    "cordwood.payload.wandb",
    "cordwood.payload.write_batch",
    "cordwood.types",
    "cordwood.typing",
]
if find_spec("apache_beam"):  # `make test-engines` installs it.
    MODULES.append("cordwood.beam")


def public_names():
    """Each public class and function, and each public method and property of these classes, once."""
    seen = set()
    for module in map(import_module, MODULES):
        own = [name for name, item in vars(module).items() if getattr(item, "__module__", None) == module.__name__]
        for name in getattr(module, "__all__", own):
            item = getattr(module, name)
            if name.startswith("_") or not isinstance(item, type | FunctionType | BuiltinFunctionType):
                continue  # A type alias, or the version.
            if item in seen or not item.__module__.startswith("cordwood"):
                continue
            seen.add(item)
            yield f"{module.__name__}.{name}", item
            for base in reversed(item.__mro__) if isinstance(item, type) else []:
                if base.__module__.startswith("cordwood"):
                    # Sorted by name: the order of properties differs from process to process.
                    for member_name, member in sorted(vars(base).items(), key=lambda item: item[0]):
                        if not member_name.startswith("_") and is_documented(member):
                            yield f"{module.__name__}.{name}.{member_name}", getattr(item, member_name)


def is_documented(member):
    """Whether it is a method or a property: enum members and tuple fields are explained by the class."""
    is_value = isinstance(member, enum.Enum | int | str | dict | tuple | type)
    return not is_value and not is_field(member) and (callable(member) or hasattr(member, "__get__"))


def is_field(member):
    return type(member).__name__ == "_tuplegetter"


PUBLIC = dict(public_names())


def test_the_public_names_include_classes_functions_and_members():
    assert PUBLIC.keys() >= {
        "cordwood.Reader",
        "cordwood.Reader.seek",
        "cordwood.Reader.skipped",
        "cordwood.open",
        "cordwood.compat.wandb.DataStore.scan_data",
        "cordwood.payload.entity.Key",
        "cordwood.payload.entity.to_dict",
        "cordwood.typing.Readable.read",
    }


@pytest.mark.parametrize("name", PUBLIC)
def test_help_shows_summary(name):
    text = inspect.getdoc(PUBLIC[name])
    assert text
    assert text.splitlines()[0] in pydoc.render_doc(PUBLIC[name], renderer=pydoc.plaintext)


OWN = {name: item for name, item in PUBLIC.items() if callable(item) and "cordwood.compat" not in name}


@pytest.mark.parametrize("name", [name for name, item in OWN.items() if not isinstance(item, type)])
def test_function_help_explains_the_parameters(name):
    """Except in the drop-ins, which leave it to their originals."""
    parameters = [parameter for parameter in inspect.signature(OWN[name]).parameters if parameter != "self"]
    sections = ["Args", *(["Options for reading", "Options for writing"] if name == "cordwood.open" else [])]
    assert [parameter for section in sections for parameter in explained(OWN[name], section)] == parameters


CONSTRUCTED = [name for name, item in OWN.items() if isinstance(item, type) and item.__text_signature__]
assert {"cordwood.Reader", "cordwood.Writer"} <= {*CONSTRUCTED}, "the signatures are not found"


@pytest.mark.parametrize("name", CONSTRUCTED)
def test_class_help_explains_the_constructor_parameters(name):
    """Except for values, whose parameters have the names of documented attributes."""
    item = OWN[name]
    parameters = list(inspect.signature(item).parameters)
    if "The constructor takes the attributes as keyword arguments" in " ".join(inspect.getdoc(item).split()):
        assert all(inspect.getdoc(getattr(item, parameter)) for parameter in parameters)
    else:
        assert explained(item, "Args") == parameters


def explained(item, section):
    """The names that a section of the item's documentation explains."""
    text = inspect.getdoc(item).partition(f"{section}:\n")[2].partition("\n\n")[0]
    names = re.findall(r"^ {4}(\w+(?:, \w+)*): .", text, re.MULTILINE)
    return ", ".join(names).split(", ") if names else []


@pytest.mark.parametrize("name", [name for name, item in PUBLIC.items() if isinstance(item, type)])
def test_class_help_explains_the_members(name):
    """`help` shows no separate text for enum members and tuple fields."""
    item = PUBLIC[name]
    members = list(item.__members__) if issubclass(item, enum.StrEnum) else []
    members += [name for name, member in vars(item).items() if is_field(member)]
    if members:
        assert explained(item, "Attributes") == members


@pytest.mark.parametrize("name", [name for name, item in PUBLIC.items() if callable(item)])
def test_each_public_callable_has_a_signature_and_type_hints(name):
    item = PUBLIC[name]
    if not (isinstance(item, type) and item.__init__ is Exception.__init__):  # That has none before Python 3.13.
        inspect.signature(item)
    hints = typing.get_type_hints(item)
    if isinstance(item, FunctionType):
        assert hints.keys() >= {"return"}


def test_the_signatures_of_open_and_follow_show_every_option_and_its_default():
    signature = inspect.signature(cordwood.open)
    options = {
        name: parameter.default
        for item in (cordwood.Reader, cordwood.Writer)
        for name, parameter in inspect.signature(item).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    assert {name: parameter.default for name, parameter in signature.parameters.items()} == {
        "source": inspect.Parameter.empty,
        "mode": "r",
        **options,
    }
    follower = dict(inspect.signature(cordwood.Follower).parameters)
    follow = inspect.signature(cordwood.follow).parameters
    assert [(name, follow[name].default) for name in follow] == [(name, follower[name].default) for name in follower]
