"""`tools/layers.py` finds imports that are against the order of the layers."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("layers", ROOT / "tools/layers.py")
layers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(layers)

IN_FUNCTION = "def f():\n    from cordwood.{} import name\n"


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({"errors": "from cordwood._many import name"}, "errors imports cordwood._many, which is in a higher layer"),
        ({"errors": "import cordwood._many"}, "errors imports cordwood._many, which is in a higher layer"),
        ({"errors": "from cordwood import _many"}, "errors imports cordwood._many, which is in a higher layer"),
        ({"_many": IN_FUNCTION.format("errors")}, "_many imports cordwood.errors in a function"),
        ({"compat/ccl": "from cordwood._many import name"}, "compat.ccl imports cordwood._many, which is not public"),
        ({"beam": "from cordwood._many import name"}, "beam imports cordwood._many, which is not public"),
        (
            {"_evidence/page": "from cordwood import _many"},
            "_evidence.page imports cordwood._many, which is not public",
        ),
        (
            {"cli/a": "from cordwood.cli import b", "cli/b": "from cordwood.cli.a import name"},
            "modules import each other: cordwood.cli.",
        ),
    ],
)
def test_reports_an_import_that_breaks_the_rules(files, fault, tmp_path, monkeypatch):
    monkeypatch.setattr(layers, "LACKS", {})
    for name in ("__init__", "errors", "_many", "_html"):
        files.setdefault(name, "")
    for name, text in files.items():
        path = tmp_path / "python" / "cordwood" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    [found] = layers.faults(tmp_path / "python")
    assert fault in found


def test_allows_imports_that_follow_the_rules(tmp_path):
    path = tmp_path / "python" / "cordwood"
    path.mkdir(parents=True)
    (path / "__init__.py").write_text("from cordwood._many import name")
    (path / "_many.py").write_text("import os\nfrom cordwood import errors\n" + IN_FUNCTION.format("_html"))
    for name in ("errors", "_html"):
        (path / f"{name}.py").write_text("")
    assert not list(layers.faults(path.parent))


def test_reports_unneeded_exceptions_to_the_import_rules(tmp_path, monkeypatch):
    monkeypatch.setattr(layers, "LACKS", {"cordwood.beam": {"cordwood._many", "cordwood._splits"}})
    path = tmp_path / "python" / "cordwood"
    path.mkdir(parents=True)
    (path / "beam.py").write_text("from cordwood._many import name")
    for name in ("__init__", "_many"):
        (path / f"{name}.py").write_text("")
    assert list(layers.faults(path.parent)) == ["cordwood.beam imports cordwood._splits no more: remove it from LACKS"]


def test_the_package_follows_the_import_rules():
    assert not list(layers.faults(ROOT / "python"))
