"""Classes of some files, and the parameters of their functions, by name."""

# Nodes with a position are told by their attributes.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import ast

from ..syntax_trees import DEFINITIONS, assigns_each, index_of, own_attribute, parameters, yields
from .caches import is_cache, is_cached_attribute
from .lookups import makes_entries
from .mutant import last_name

_MAX_BASES = 8
_MAX_NAMESAKES = 3
"""Functions of the same name; of more, a call is likely to mean another one."""
_MAX_CONVERSIONS = 2
_MAX_ALTERNATIVES = 6
_MAKERS = "dict", "list", "set", "deque", "OrderedDict", "Counter", "bytearray"
_MAX_ALIKE = 3
"""Names that one may have been mistaken for."""
_MAX_WORDS = 10
"""Words of a method's name that are compared with those of others."""
_PROPERTIES = ("property", "cached_property")


class Definitions:
    """Names that a change of one function may use of the code around it."""

    def __init__(self, trees):
        """`trees`: {name of a file: its syntax tree}."""
        self.trees = trees
        self._classes, self._functions, self._states = {}, {}, {}
        self._filenames = {}
        """Function -> name of its file."""
        self._left_empty = self._fields = self._methods = self._below = None
        self.attribute_uses = {}
        """Name of a file -> uses of the attributes in it, of those files for which they were asked."""
        self.cached = {}
        """Name of functions -> [(syntax tree of one, line of its decorator that keeps its results)]."""
        self.cached_attributes = {}
        """Name of an attribute -> (function that computes it, line of a decorator that keeps its value)."""
        self.alternatives = {}
        """Name of an attribute -> names of those that are asked for beside it somewhere: `x.isOptional or x.isDefault`."""
        self.asked = set()
        """Nodes of these attributes there."""
        self.making_entries = set()
        """Names of variables and attributes that are set to a `defaultdict`."""
        for filename, tree in trees.items():
            for node in ast.walk(tree):
                if isinstance(node, DEFINITIONS):
                    self._filenames[node] = filename
                elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
                    self._add_alternatives(node)
                elif isinstance(node, (ast.Assign, ast.AnnAssign)) and makes_entries(node.value):
                    found = (last_name(target) for target, _ in _declared_in(node))
                    self.making_entries.update(name for name in found if name is not None)
                for one in node.decorator_list if isinstance(node, DEFINITIONS) else ():
                    if is_cache(one):
                        self.cached.setdefault(node.name, []).append((node, one.lineno))
                    elif is_cached_attribute(one):
                        self.cached_attributes[node.name] = node, one.lineno
                if isinstance(node, ast.ClassDef):
                    self._classes.setdefault(node.name, node)
                    for one in node.body:
                        if isinstance(one, DEFINITIONS):
                            name = node.name if one.name == "__init__" else one.name
                            self._functions.setdefault(name, []).append((one, True))
                elif isinstance(node, ast.Module):
                    for one in node.body:
                        if isinstance(one, DEFINITIONS):
                            self._functions.setdefault(one.name, []).append((one, False))

    def _add_alternatives(self, node):
        """Add attributes of one variable that an `or` asks for."""
        found = [
            one for one in node.values if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name)
        ]
        for one in found[:_MAX_ALTERNATIVES]:
            self.asked.add(one)
            for other in found[:_MAX_ALTERNATIVES]:
                known = self.alternatives.setdefault(one.attr, [])
                is_other = other.attr not in (one.attr, *known) and other.value.id == one.value.id
                known += [other.attr] if is_other and len(known) < _MAX_ALTERNATIVES else []

    def is_generator(self, name):
        """True if all functions of this name are generators."""
        functions = self._functions.get(name, ())
        return bool(functions) and all(yields(node) for node, _ in functions)

    def find_called(self, call):
        """(name of the file, syntax tree) of the function that a call is likely to mean; None if there is none, or several.

        Of several, that of the module that it names: `registry.remove(…)`.
        """
        functions = self._functions.get(last_name(call.func), ())
        found = [(self._filenames[one], one) for one, _ in functions]
        if len(found) > 1:
            module = f"{last_name(getattr(call.func, 'value', None))}.py"
            found = [one for one in found if one[0].rpartition("/")[2] == module]
        return found[0] if len(found) == 1 else None

    def cached_as(self, name, function):
        """(syntax tree, line of the decorator) of the function of a name that keeps its results; None if it is not clear which.

        One in the file of `function`, where there is one.
        """
        found, filename = self.cached.get(name, ()), self._filenames.get(function)
        found = [one for one in found if self._filenames[one[0]] == filename] or found
        return found[0] if len(found) == 1 else None

    def filename_of(self, function):
        """Name of the file of a function or a class."""
        return self._filenames[function]

    def alike(self, name):
        """Attributes of classes with one of that name whose names end with it, or it with theirs: `amount`, `raked_amount`.

        For a method those of its class with the same parameters, and one word more or less: `has_entry`, `has_own_entry`.
        Empty if there are many: they are of a kind, not mistaken for each other.
        """
        found = [one for fields in self._fields_of_classes if name in fields for one in fields]
        fields = {one for one in found if _is_ending(one, name) or _is_ending(name, one)}
        alike = fields | self._methods_alike.get(name, set())
        return sorted(alike) if len(alike) <= _MAX_ALIKE else []

    def has_field(self, name):
        """True if objects of one of the classes have an attribute of that name."""
        return any(name in fields for fields in self._fields_of_classes)

    @property
    def _fields_of_classes(self):
        if self._fields is None:
            self._fields = [_fields_of(node) for node in self._classes.values()]
        return self._fields

    @property
    def _methods_alike(self):
        """Name of a method -> those of its class with the same parameters and one word more or less."""
        if self._methods is None:
            self._methods = {}
            for node in self._classes.values():
                methods = [one for one in node.body if isinstance(one, DEFINITIONS)]
                known: dict = {
                    (_words_of(one.name), tuple(parameters(one.args))): one.name for one in methods
                }
                for (words, given), longer in known.items():
                    for index in range(len(words)):
                        shorter = known.get(((*words[:index], *words[index + 1 :]), given))
                        if shorter is not None:
                            self._methods.setdefault(shorter, set()).add(longer)
                            self._methods.setdefault(longer, set()).add(shorter)
        return self._methods

    @property
    def left_empty(self):
        """Attributes of all classes that are None or empty containers in the beginning, with the text of that value."""
        if self._left_empty is None:
            self._left_empty = {}
            for owner in self._classes:
                for name, text in self.state(owner).initial.items():
                    if is_empty(text) or text == "None":
                        self._left_empty.setdefault(name, text)
        return self._left_empty

    def replaced(self, owner, name):
        """The method of a base class that a method of `owner` replaces; None if none is known."""
        for node in self._with_bases(owner):
            for part in node.body if node.name != owner else ():
                if isinstance(part, DEFINITIONS) and part.name == name:
                    return part
        return None

    def overriding(self, owner, name):
        """Names of the classes below `owner` that have a method of that name which replaces its own."""
        if self._below is None:
            self._below = {}
            for one, node in self._classes.items():
                names = {part.name for part in node.body if isinstance(part, DEFINITIONS)}
                for base in self._with_bases(one):
                    if base is not node:
                        self._below.setdefault(base.name, []).append((one, names))
        return [one for one, names in self._below.get(owner, ()) if name in names]

    def state(self, owner):
        """The `State` of the objects of a class."""
        if owner not in self._states:
            self._states[owner] = State(*self._bodies(owner))
        return self._states[owner]

    def parameters(self, name):
        """[(names of positional parameters, {each parameter that has a default: default})] of functions of this name."""
        found = []
        functions = self._functions.get(name, ())
        for node, is_method in functions if len(functions) <= _MAX_NAMESAKES else ():
            given = node.args
            positional = [one.arg for one in [*given.posonlyargs, *given.args]]
            first = len(positional) - len(given.defaults)
            defaults = dict(zip(positional[first:], given.defaults))
            for one in given.posonlyargs:
                defaults.pop(one.arg, None)
            for one, value in zip(given.kwonlyargs, given.kw_defaults):
                if value is not None:
                    defaults[one.arg] = value
            is_bound = is_method and not any(
                getattr(one, "id", "") == "staticmethod" for one in node.decorator_list
            )
            found.append((positional[1:] if is_bound else positional, defaults))
        return found

    def _bodies(self, owner):
        """(methods, other statements) of a class and its bases, the nearest first, and of the methods the constructors first."""
        methods, others = [], []
        for node in self._with_bases(owner):
            for part in node.body:
                (methods if isinstance(part, DEFINITIONS) else others).append(part)
        return sorted(methods, key=lambda one: one.name != "__init__"), others

    def _with_bases(self, owner):
        """Yield the syntax trees of a class and of its bases, the nearest first."""
        waiting, known = [owner], set()
        while waiting and len(known) < _MAX_BASES:
            one = waiting.pop(0)
            node = self._classes.get(one)
            if node is not None and one not in known:
                known.add(one)
                yield node
                waiting += map(last_name, node.bases)


class State:
    """Use that the methods of a class make of the attributes of its objects."""

    def __init__(self, methods, others):
        self.initial: dict = {}
        """Attribute -> text of what it is set to, by constructors first, where that needs no names: `None`, `[]`."""
        self.containers: list = []
        """Those of them that are empty containers then, and attributes with members that methods `add`, `discard` or delete."""
        self.attributes: set = set()
        """Names of all that they speak of."""
        self.assigned: list = []
        """Names of those that constructors set."""
        self.of_class: list = []
        """Names of those that are containers of the class, for all its objects."""
        self.numbers: list = []
        """Names of those that are numbers of the class, and that constructors don't set."""
        self.conversions: dict = {}
        """Parameter -> [(receiver or None, text)] of what methods make of it before they use it: ("self", "self.clean(key)")."""
        self.converting: set = set()
        """(method, parameter) where one does."""
        called, setting = {}, set()
        for method in methods:
            for name, *made in _conversions_in(method):
                self.converting.add((method, name))
                known = self.conversions.setdefault(name, [])
                if made not in known and len(known) < _MAX_CONVERSIONS:
                    known.append(made)
            for node in ast.walk(method):
                if own_attribute(node):
                    self.attributes.add(node.attr)
                name = getattr(_filled_in(node), "attr", None)
                if name is not None and name not in self.containers:
                    self.containers.append(name)
                call = node.value if isinstance(node, ast.Expr) else None
                if isinstance(call, ast.Call) and not call.args + call.keywords and own_attribute(call.func):
                    called[call.func.attr] = True
                for target, value in assigned_in(node):
                    if own_attribute(target):
                        setting.add(method.name)
                        self._add(target.attr, value)
                        if method.name == "__init__" and target.attr not in self.assigned:
                            self.assigned.append(target.attr)
        for node in others:
            for target, value in assigned_in(node):
                if isinstance(target, ast.Name):  # a field of a data class, or a default for all objects
                    self._add(target.id, _default_of(value))
                    if type(getattr(value, "value", None)) is int and target.id not in self.assigned:
                        self.numbers.append(target.id)
                    is_container = isinstance(value, (ast.List, ast.Dict, ast.Set)) or container_text(value)
                    if is_container and target.id not in (*self.assigned, *self.of_class, "__slots__"):
                        self.of_class.append(target.id)
        self.refreshing = [name for name in called if name in setting]
        """Names of methods that others call for their effect alone, `self.build_index()`, and that set attributes."""

    def _add(self, name, value):
        text = initial_text(value)
        if text and name not in self.initial:
            self.initial[name] = text
            self.containers += [name] if container_text(value) and name not in self.containers else []


def _fields_of(owner):
    """Names of a class's properties, and of the attributes that it declares or that its methods set."""
    names = {
        target.id for node in owner.body for target, _ in _declared_in(node) if isinstance(target, ast.Name)
    }
    for method in owner.body:
        if isinstance(method, DEFINITIONS):
            if any(last_name(one) in _PROPERTIES for one in method.decorator_list):
                names.add(method.name)
            for node in ast.walk(method):
                names |= {target.attr for target, _ in assigned_in(node) if own_attribute(target)}
    return names


def _declared_in(node):
    """[(target, value or None)] of a statement of a class."""
    return [(node.target, node.value)] if isinstance(node, ast.AnnAssign) else assigned_in(node)


def _words_of(name):
    """Words of a name, and how it begins; of one with very many the name alone."""
    words = name.strip("_").split("_")
    return (name[: len(name) - len(name.lstrip("_"))], *words) if len(words) <= _MAX_WORDS else (name,)


def _is_ending(short, long):
    return long.endswith("_" + short.strip("_")) and short.strip("_") != long.strip("_")


def _conversions_in(method):
    """Yield (parameter, receiver of its conversion, text of that) of what a method assigns to it, or takes as a key."""
    names = set(parameters(method.args)) - {"self", "cls"}
    for node in ast.walk(method):
        if isinstance(node, ast.Assign):
            made = [(node.value, one.id) for one in node.targets if isinstance(one, ast.Name)]
        elif isinstance(node, ast.Subscript):
            made = [(index_of(node), None)]
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            made = [(node.left, None)]
        else:
            continue
        for value, target in made:
            name, receiver, text = _conversion(value, names)
            if name in names and target in (None, name):
                yield name, receiver, text


def _conversion(value, names):
    """(name, receiver or None, text) of a call that converts a variable; else (None, None, "").

    `str(name)`, `self.clean(name)`, `name.lower()`; not a call of what is itself among `names`.
    """
    if isinstance(value, ast.Call) and not value.keywords:
        called, given = value.func, [one.id for one in value.args if isinstance(one, ast.Name)]
        if isinstance(called, ast.Name) and called.id not in names and len(given) == len(value.args) == 1:
            return given[0], None, f"{called.id}({given[0]})"
        base = getattr(called.value, "id", None) if isinstance(called, ast.Attribute) else None
        if base in ("self", "cls") and len(given) == len(value.args) == 1:
            return given[0], base, f"{base}.{called.attr}({given[0]})"
        if base and not value.args:
            return base, None, f"{base}.{called.attr}()"
    return None, None, ""


def _filled_in(node):
    """The attribute of which a member is added or deleted: `self.x` of `self.x.add(key)`, `del self.x[key]`; else None."""
    found = None
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Del):
        found = node.value
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", None) in ("add", "discard"):
        found = node.func.value
    return found if own_attribute(found) else None


def _default_of(value):
    """The default of a field: `field(default=0)` of dataclasses, `attr.ib(factory=list)` of attrs, or a value itself."""
    for one in value.keywords if isinstance(value, ast.Call) else ():
        if one.arg == "default":
            return one.value
        if one.arg in ("factory", "default_factory"):
            return ast.Call(func=one.value, args=[], keywords=[])
    return value


def assigned_in(node):
    """[(target, value)] of an assignment."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return [(node.target, node.value)]
    if not isinstance(node, ast.Assign):
        return []
    if assigns_each(node):
        return zip(node.targets[0].elts, node.value.elts)
    return [(target, node.value) for target in node.targets]


def initial_text(value):
    """Text of an expression that needs no names, as a value in the beginning has: `None`, `-1`, `''`, `[]`; else empty."""
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        number = getattr(value.operand, "value", None)
        return f"-{number}" if type(number) is int else ""
    if isinstance(value, ast.Constant):
        kind = type(value.value)
        is_empty_text = kind in (str, bytes) and not value.value
        is_number = kind in (bool, int) or (kind is float and "inf" not in repr(value.value))
        return repr(value.value) if value.value is None or is_number or is_empty_text else ""
    return container_text(value)


def is_empty(text):
    """True for the text of an empty container: `[]`, `set()`, `''`."""
    return text.endswith((")", "]", "}", "''"))


def container_text(value):
    """Text of an expression that makes an empty container: `[]`, `{}`, `set()`; else empty."""
    if isinstance(value, ast.List):
        return "" if value.elts else "[]"
    if isinstance(value, ast.Dict):
        return "" if value.keys else "{}"
    if not isinstance(value, ast.Call) or value.args or value.keywords:
        return ""
    name = getattr(value.func, "id", "")
    return f"{name}()" if name in _MAKERS else ""
