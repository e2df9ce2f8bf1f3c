"""Places in the source at which a value is recorded."""

from __future__ import annotations

STORE, RETURN, YIELD, CALL, ARGUMENT, PARAMETER, ENTER = (
    "store",
    "return",
    "yield",
    "call",
    "argument",
    "parameter",
    "enter",
)
BASE, ITEM, KEY, ITERABLE, ELEMENT, TEST, AUGMENTED, BRANCH, CAUGHT, SOUGHT, ASKED = (
    "base",
    "item",
    "key",
    "iterable",
    "element",
    "test",
    "augmented",
    "branch",
    "caught",
    "sought",
    "asked",
)
OPERAND, SETATTR, GETATTR = "operand", "setattr", "getattr"
SETTING = (BASE, ITEM, SETATTR)
"""Of these an attribute or an item may be set."""
ASIDES = (SOUGHT, ASKED, OPERAND)
"""Key and container of `key in container`, and operands of `and` and `or`: recorded beside the expression that they are in."""

MUTATORS = frozenset(
    "append extend insert remove pop clear sort reverse update add discard setdefault popitem appendleft popleft"
    " extendleft rotate difference_update intersection_update symmetric_difference_update".split()
)
SHRINKING = frozenset(
    "remove pop clear popitem popleft discard difference_update intersection_update delete".split()
)


class Scope:
    """A function or module, and the names that it binds."""

    def __init__(self, filename, name, parent):
        self.filename, self.name, self.parent = filename, name, parent
        self.bound = set()
        self.foreign = set()
        self.is_class = False
        self.defaults = frozenset()
        """Parameters whose default is a container, which all calls share."""

    def owner_of(self, name):
        """The scope that a name belongs to as this one sees it: the module for a name that no function binds."""
        scope = self
        while scope.parent is not None and name not in scope.bound:
            scope = scope.parent
        return scope


class Site:
    """One expression whose value is recorded."""

    __slots__ = (
        "_globals",
        "augments",
        "choices",
        "control",
        "deps",
        "extra",
        "is_call",
        "kind",
        "line",
        "name",
        "number",
        "scope",
    )

    def __init__(self, number, kind, scope, line, name):
        self.number, self.kind, self.scope, self.line, self.name = number, kind, scope, line, name
        self.deps = ()
        """Names that it reads (str), and sites of its parts (int)."""
        self.choices = ()
        """(True for `or`, [(site, deps, choices) of each operand]) of each `and` and `or` that its value depends on.

        Of a `getattr` with a default (None, [the same of its object, and of the default, without a site]).
        """
        self.extra = None
        """The names of a store; how a base is used; the site of an item's key, or a constant one, also of a container that
        is asked for it, and of a method's first argument (with a constant default);
        of a branch, the site of its condition; of an argument of `exec`, the site of the code;
        of the object of `setattr` and `getattr` like that of an item, with the attribute's name as its key."""
        self.is_call = False
        self.augments = False
        self.control = None
        """The site of the condition or loop that it stands in."""
        self._globals = None

    def global_names(self):
        """The globals of the module that a function reads there."""
        if self._globals is None:
            names = [dep for dep in self.deps if type(dep) is str] if self.scope.parent is not None else []
            self._globals = [name for name in names if self.scope.owner_of(name).parent is None]
        return self._globals
