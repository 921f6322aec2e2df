"""The lists of deviations: the documentation has them all, and each is tested."""

import re
import subprocess
import sys
from pathlib import Path

from compat_pairs import DEVIATIONS, PAIRS

from cordwood import compat
from cordwood.compat import appengine, ccl, dfindexeddb, leveldb_export, wandb

MODULES = {
    "In all of them": compat,
    "wandb": wandb,
    "App Engine": appengine,
    "leveldb-export": leveldb_export,
    "ccl_chromium_reader": ccl,
    "dfindexeddb": dfindexeddb,
}


def bullets(text):
    """The points of a list, whose lines may be cut elsewhere."""
    found = re.findall(r"^\* \*\*[a-z-]+\*\*:.*?(?=\n\* |\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return [" ".join(bullet.split()) for bullet in found]


def names_in(text):
    return re.findall(r"^\* \*\*([a-z-]+)\*\*:", text, re.MULTILINE)


def test_compat_page_and_module_docstrings_list_the_same_deviations():
    page = (Path(__file__).parents[2] / "docs/reference/compat.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    for title, module in MODULES.items():
        assert bullets(sections[title].strip()) == bullets(module.__doc__.strip())
        assert bullets(module.__doc__.strip())


def test_each_deviation_is_tested():
    shown = {(pair.drop_in, name) for pair in PAIRS for name in DEVIATIONS[pair.calls]}
    shown |= {("appengine", name) for name in ("unknown-type", "joined")}  # leveldb-export contains a copy.
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    for title, module in MODULES.items():
        drop_in = module.__name__.rpartition(".")[2]
        for name in names_in(module.__doc__):
            is_named = f"\ndef test_{drop_in}_{name.replace('-', '_')}" in tests
            assert (drop_in, name) in shown or is_named, (title, name)


def test_importing_a_drop_in_module_does_not_load_the_original():
    names = ", ".join(module.__name__.rpartition(".")[2] for module in MODULES.values() if module is not compat)
    script = f"import sys; from cordwood.compat import {names};"
    script += "print({'wandb', 'google', 'asyncio', 'typing_extensions'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
