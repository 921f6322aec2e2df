"""What no console session shows of the command itself."""

import importlib
import sys

from cordwood.cli import main


def test_ctrl_c_while_a_verb_is_imported(monkeypatch, capfd):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupted)
    assert main(["cat", "log"]) == 130
    assert capfd.readouterr() == ("", "")


def test_shtab_may_be_looked_for_in_vain(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "shtab", None)
    (tmp_path / "log").touch()
    assert main(["cat", str(tmp_path / "log")]) == 0
