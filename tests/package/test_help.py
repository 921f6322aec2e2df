"""What `help`, `inspect.signature` and `typing.get_type_hints` say about the public names.

The documentation of the compiled module is written once, in Rust. The stub repeats it, since editors read it there.
"""

import ast
import enum
import inspect
import pydoc
import re
import typing
from importlib import import_module
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType

import pytest

import cordwood
from cordwood import _native

STUB = Path(cordwood.__file__).with_name("_native.pyi")
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


def stubbed(node, name=""):
    """The classes, methods, properties and functions of the stub, by their qualified names."""
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            path = f"{name}.{child.name}".lstrip(".")
            yield path, child
            yield from stubbed(child, path)


def found(path):
    item = _native
    for name in path.split("."):
        item = getattr(item, name)
    return item


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


STUBBED = dict(stubbed(ast.parse(STUB.read_text(encoding="utf-8"))))
PUBLIC = dict(public_names())
SIGNED = {
    path: node
    for path, node in STUBBED.items()
    if path.endswith(".__new__") or isinstance(found(path), MethodDescriptorType | BuiltinFunctionType)
}


def test_names_are_found():
    assert STUBBED.keys() >= {"Reader", "Reader.records", "Reader.skipped", "verify"}
    assert SIGNED.keys() >= {"Reader.__new__", "Reader.record_batches", "Reader.__exit__", "WriteBatch.build", "verify"}
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


@pytest.mark.parametrize("path", STUBBED)
def test_the_stub_says_what_help_says(path):
    expected = ast.get_docstring(STUBBED[path])
    if expected is not None:
        assert inspect.getdoc(found(path)) == expected
    else:
        assert path.split(".")[-1].startswith("__")


@pytest.mark.parametrize("path", SIGNED)
def test_the_stub_has_the_signature(path):
    node = SIGNED[path]
    owner, _, name = path.rpartition(".")
    item = found(owner if name == "__new__" else path)
    parameters = list(inspect.signature(item).parameters.values())
    args = node.args
    kinds = [
        (args.posonlyargs, inspect.Parameter.POSITIONAL_ONLY),
        (args.args, inspect.Parameter.POSITIONAL_OR_KEYWORD),
    ]
    expected = [[arg.arg, kind, inspect.Parameter.empty] for group, kind in kinds for arg in group]
    for parameter, default in zip(reversed(expected), reversed(args.defaults), strict=False):
        parameter[2] = ast.literal_eval(default)
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        value = inspect.Parameter.empty if default is None else ast.literal_eval(default)
        expected.append([arg.arg, inspect.Parameter.KEYWORD_ONLY, value])
    if name == "__new__":
        del expected[0]
    elif isinstance(item, MethodDescriptorType):
        assert parameters.pop(0).name == expected.pop(0)[0] == "self"
    assert [[parameter.name, parameter.kind, parameter.default] for parameter in parameters] == expected


@pytest.mark.parametrize("name", PUBLIC)
def test_help(name):
    text = inspect.getdoc(PUBLIC[name])
    assert text
    assert text.splitlines()[0] in pydoc.render_doc(PUBLIC[name], renderer=pydoc.plaintext)


OWN = {name: item for name, item in PUBLIC.items() if callable(item) and "cordwood.compat" not in name}


@pytest.mark.parametrize("name", [name for name, item in OWN.items() if not isinstance(item, type)])
def test_a_function_explains_its_parameters(name):
    """Except in the drop-ins, which leave it to their originals."""
    parameters = [parameter for parameter in inspect.signature(OWN[name]).parameters if parameter != "self"]
    assert explained(OWN[name], "Args") == parameters


@pytest.mark.parametrize("name", [f"cordwood.{path.removesuffix('.__new__')}" for path in SIGNED if "__new__" in path])
def test_a_class_explains_the_parameters_of_its_constructor(name):
    """Except for values, whose parameters have the names of documented attributes."""
    item = found(name.removeprefix("cordwood."))
    parameters = list(inspect.signature(item).parameters)
    if "The constructor takes the attributes as keywords" in " ".join(inspect.getdoc(item).split()):
        assert all(inspect.getdoc(getattr(item, parameter)) for parameter in parameters)
    else:
        assert explained(item, "Args") == parameters


def explained(item, section):
    """The names that a section of the item's documentation explains."""
    text = inspect.getdoc(item).partition(f"{section}:\n")[2].partition("\n\n")[0]
    names = re.findall(r"^ {4}(\w+(?:, \w+)*): .", text, re.MULTILINE)
    return ", ".join(names).split(", ") if names else []


@pytest.mark.parametrize("name", [name for name, item in PUBLIC.items() if isinstance(item, type)])
def test_a_class_explains_its_members(name):
    """`help` shows no separate text for enum members and tuple fields."""
    item = PUBLIC[name]
    members = list(item.__members__) if issubclass(item, enum.StrEnum) else []
    members += [name for name, member in vars(item).items() if is_field(member)]
    if members:
        assert explained(item, "Attributes") == members


@pytest.mark.parametrize("name", [name for name, item in PUBLIC.items() if callable(item)])
def test_signature_and_type_hints(name):
    item = PUBLIC[name]
    if not (isinstance(item, type) and item.__init__ is Exception.__init__):  # That has none before Python 3.13.
        inspect.signature(item)
    hints = typing.get_type_hints(item)
    if isinstance(item, FunctionType):
        assert hints.keys() >= {"return"}


def test_open_says_what_it_takes():
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
