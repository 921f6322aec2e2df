"""The exports of the package."""

import importlib.metadata
import importlib.resources
import subprocess
import sys
from types import ModuleType

import cordwood


def test_the_version_matches_the_wheel():
    assert cordwood.__version__ == importlib.metadata.version("cordwood")


def test_the_package_exports_exactly_the_public_names():
    names = [name for name in dir(cordwood) if not name.startswith("_")]
    public = {name for name in names if not isinstance(getattr(cordwood, name), ModuleType)}
    assert public | {"__version__"} == set(cordwood.__all__)


def test_the_package_contains_type_information():
    files = importlib.resources.files(cordwood)
    assert files.joinpath("py.typed").is_file()
    assert files.joinpath("_native.pyi").is_file()


def test_public_classes_report_the_right_module():
    for name in cordwood.__all__:
        item = getattr(cordwood, name)
        if isinstance(item, type):
            assert getattr(sys.modules[item.__module__], item.__name__) is item, name


def test_importing_the_package_does_not_load_rarely_needed_modules():
    script = "import sys; before = set(sys.modules); import cordwood; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    assert not {"logging", "asyncio", "json", "cordwood.payload"} & set(done.stdout.split())


def test_a_subinterpreter_cannot_import_the_package():
    """It would get the exceptions of the main interpreter, which it cannot catch."""
    script = """
try:
    import _interpreters as interpreters
except ModuleNotFoundError:  # before Python 3.13
    import _xxsubinterpreters as interpreters
import cordwood
other = interpreters.create()
interpreters.run_string(other, '''
try:
    import cordwood
except ImportError as error:
    print(error)
''')
interpreters.destroy(other)
print(cordwood.crc32c(b"123456789"))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True, timeout=120)
    message, crc = done.stdout.splitlines()
    assert "sub-interpreter" in message
    assert int(crc) == 0xE3069283
