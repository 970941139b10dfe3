"""The option --exhaustive: without it a test marked `exhaustive` is left out, and a test may ask `is_exhaustive`."""

import itertools

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--exhaustive", action="store_true", help="every case of the tests that otherwise run a part")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "exhaustive: runs with --exhaustive alone, as others test the same kind of thing")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--exhaustive"):
        return
    left_out = [item for item in items if item.get_closest_marker("exhaustive")]
    items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]
    config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def is_exhaustive(request: pytest.FixtureRequest) -> bool:
    return request.config.getoption("--exhaustive")


def diagonal(*values: list) -> list:
    """All combinations of the values. Only as many as the longest list has run without --exhaustive; each value is in one."""
    few = {tuple(options[i % len(options)] for options in values) for i in range(max(map(len, values)))}
    return [pytest.param(*each, marks=() if each in few else pytest.mark.exhaustive) for each in itertools.product(*values)]
