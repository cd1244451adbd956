"""Entry point of the pytest plugin: the option ``--attnpool`` and a fixture. All else is imported on demand.

It stands outside of the packages because importing ``attnpool_ref`` brings NumPy, which a run that judges nothing does
not wait for.
"""

import pytest

PREFIX = "attnpool::"
CHOSEN = pytest.StashKey[list[str]]()


def pytest_addoption(parser):
    """Adds ``--attnpool`` and its setting."""
    group = parser.getgroup("attnpool", "judging attention poolings")
    group.addoption(
        "--attnpool",
        action="append",
        nargs="?",
        const="",
        metavar="WORDS",
        help="Judge what these words of `attnpool check` name, such as my.pooling or 'my.pooling:pool --as mean_pooling'; "
        "one test for each guarantee and function. Without words: what the setting `attnpool` names.",
    )
    parser.addini("attnpool", "What --attnpool alone judges: the words of `attnpool check`, a line each.", "linelist")


def pytest_configure(config):
    """Registers the marker of these tests."""
    config.addinivalue_line("markers", "attnpool: a guarantee that `pytest --attnpool` judges")


@pytest.hookimpl(tryfirst=True)  # before pytest looks for files of these names
def pytest_collection(session):
    """Takes ids such as ``attnpool::mean_pooling::values`` from the arguments: they name no files."""
    args = session.config.args
    session.config.stash[CHOSEN] = [arg for arg in args if arg.startswith(PREFIX)]
    args[:] = [arg for arg in args if not arg.startswith(PREFIX)]


@pytest.hookimpl(tryfirst=True)  # before -k and -m choose among them
def pytest_collection_modifyitems(session, config, items):
    """Adds one test for each guarantee and function of the implementations; with ids as arguments, only their tests."""
    asked, chosen = config.getoption("attnpool"), config.stash[CHOSEN]
    if asked is None and not chosen:
        return
    lines = [words for given in asked or [""] for words in ([given] if given else config.getini("attnpool"))]
    if not lines:
        raise pytest.UsageError("--attnpool needs a candidate, or the setting `attnpool` that names some")
    from attnpool_ref.cli.pytest_plugin import tests_of

    found = list(tests_of(session, lines))
    for name in chosen:
        if not any(_is_of(item, name) for item in found):
            raise pytest.UsageError(f"not found: {name}")
    items.extend(item for item in found if not chosen or any(_is_of(item, name) for name in chosen))


def _is_of(item, name):
    return f"{item.nodeid}::".startswith(f"{name}::")


@pytest.fixture(scope="session")
def attnpool_check():
    """:func:`attnpool_ref.conformance.check`, as a fixture."""
    from attnpool_ref import conformance

    return conformance.check
