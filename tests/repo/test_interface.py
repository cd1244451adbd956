"""No public name, path, signature, option, key or field goes: ``interface.txt`` lists them."""

import interface

STORED = interface.STORED.read_text().splitlines()


def test_nothing_public_goes_and_what_is_new_is_listed():
    found = set(interface.interface())
    assert sorted(set(STORED) - found) == [], "a change that breaks somebody's code"
    assert sorted(found - set(STORED)) == [], "run `python tests/repo/interface.py` and commit what it writes"


def test_each_path_that_is_imported_or_pickled_leads_to_something():
    for line in STORED:
        what, _, path = line.partition(": ")
        if what in ("import", "class"):
            interface.resolved(path)
