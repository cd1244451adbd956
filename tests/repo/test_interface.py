"""No public option, key, field or path of a class goes: ``interface.txt`` lists them; the stubs show names and signatures."""

import interface

STORED = interface.STORED.read_text().splitlines()


def test_nothing_public_goes_and_what_is_new_is_listed():
    found = set(interface.interface())
    assert sorted(set(STORED) - found) == [], "a change that breaks somebody's code"
    assert sorted(found - set(STORED)) == [], "run `python tests/repo/interface.py` and commit what it writes"
