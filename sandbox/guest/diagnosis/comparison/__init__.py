"""Compares a failing run with a passing one: the first lines where path or values part."""
