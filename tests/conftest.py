"""Hypothesis profiles: `pytest --hypothesis-profile=thorough` for a long search before a release."""

import logging
import os

import pytest
from hypothesis import HealthCheck, settings

# No deadline: how long an example takes depends on the machine. Logs of several blocks are slow to draw, as intended.
# Where the outcome must depend on the commit alone, the examples are the same each time.
settings.register_profile(
    "cordwood",
    deadline=None,
    suppress_health_check=list(HealthCheck),
    max_examples=300,
    derandomize="CI" in os.environ,
)
settings.register_profile("thorough", settings.get_profile("cordwood"), max_examples=20_000)
settings.load_profile("cordwood")


@pytest.fixture
def no_log(monkeypatch):
    """Nothing is logged: of thousands of damaged files, pytest would keep what is logged of each."""
    monkeypatch.setattr(logging.getLogger("cordwood"), "disabled", True)
