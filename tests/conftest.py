"""Hypothesis profiles: `pytest --hypothesis-profile=thorough` for a long search before a release."""

import logging
import os

import pytest
from hypothesis import HealthCheck, settings

# No deadline: how long an example takes depends on the machine. Logs of several blocks are slow to draw, as intended.
# In CI, the outcome must depend only on the commit, so the examples are the same in each run.
settings.register_profile(
    "cordwood",
    deadline=None,
    suppress_health_check=list(HealthCheck),
    max_examples=300,
    derandomize="CI" in os.environ,
)
settings.register_profile("thorough", settings.get_profile("cordwood"), max_examples=20_000)
settings.load_profile("cordwood")

WITHOUT_CORPUS = pytest.StashKey[int]()


def pytest_collection_modifyitems(config, items):
    """Without the corpus, deselects the tests that need it; the end of the run's output says so."""
    if os.environ.get("CORDWOOD_CORPUS"):
        return
    needing = [item for item in items if item.get_closest_marker("corpus")]
    if needing:
        items[:] = [item for item in items if item not in needing]
        config.hook.pytest_deselected(items=needing)
    config.stash[WITHOUT_CORPUS] = len(needing)


def pytest_terminal_summary(terminalreporter, config):
    if count := config.stash.get(WITHOUT_CORPUS, 0):
        terminalreporter.section("not run", yellow=True)
        terminalreporter.line(
            f"{count} tests read files of other people that are not in the repository: name their directory by "
            "CORDWOOD_CORPUS (see tests/vectors/README.md)",
            yellow=True,
        )


@pytest.fixture
def no_log(monkeypatch):
    """Disables logging: pytest would keep the messages about each of thousands of damaged files."""
    monkeypatch.setattr(logging.getLogger("cordwood"), "disabled", True)
