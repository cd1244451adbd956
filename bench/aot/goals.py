"""Goals of compiled programs as data, and which results miss theirs."""


def missed(found):
    return []
