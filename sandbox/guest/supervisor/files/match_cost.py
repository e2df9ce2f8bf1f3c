"""Cost of matching a regular expression: how it grows with the length of a line."""

from __future__ import annotations


def variable_repeats(pattern: str):
    """Count the parts of a pattern that match a varying length: n of them try at most length ** (n + 1) ways
    on a line.

    None when that is unknown: repeats within repeats, back references, or a pattern that this Python parses
    differently.
    """
    try:
        from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue] - since Python 3.11
    except ImportError:
        import sre_parse as parser
    try:
        return _count(parser.parse(pattern))
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return None


def _count(parsed):
    total = 0
    for operation, argument in parsed:
        count = _count_one(str(operation), argument)
        if count is None:
            return None
        total += count
    return total if total <= 6 else None


def _count_one(operation: str, argument):
    if operation in ("LITERAL", "NOT_LITERAL", "ANY", "IN", "AT", "CATEGORY", "RANGE"):
        return 0
    if operation == "SUBPATTERN":
        return _count(argument[-1])
    if operation == "BRANCH":
        counts = [_count(branch) for branch in argument[1]]
        return None if None in counts else sum(counts)
    if operation in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, most, body = argument
        if most == 1:
            inner = _count(body)
            return None if inner is None else inner + 1
        single = len(body) == 1 and str(body[0][0]) in ("LITERAL", "NOT_LITERAL", "ANY", "IN")
        return (0 if least == most else 1) if single else None
    return None
