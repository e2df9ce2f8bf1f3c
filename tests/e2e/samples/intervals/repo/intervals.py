"""Sets of whole numbers, kept as ranges that neither touch nor overlap."""


def merge(ranges):
    """The same numbers as `ranges` (pairs of first and last), in as few ranges as possible."""
    result = []
    for first, last in sorted(ranges):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], last)
        else:
            result.append((first, last))
    return result


def count(ranges):
    """How many numbers there are."""
    return sum(last - first + 1 for first, last in merge(ranges))
