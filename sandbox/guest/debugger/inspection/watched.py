"""Expressions whose value is compared at each line: read without code of the program where that is possible."""

# `_read` is None only where the value is computed.
# pyright: reportOptionalCall=false
from __future__ import annotations

import ast
import weakref

from ..isolation.pristine import time
from . import await_eval, safe_repr
from .attributes import OPAQUE
from .time_limit import Overtime
from .value_parts import ATOMS, UNDEFINED, are_equal, changed_places, collect_parts, have_changed, mark
from .watch_paths import (
    STEPS,
    Computed,
    Ended,
    InFrame,
    InScope,
    OnObject,
    is_plain,
    local_names,
    parse,
    path_of,
    reference,
)

EVALUATION_S = 0.05
"""Limit for one evaluation that runs code of the program."""
MEAN_S = 0.0005
"""Limit for the mean of many."""
_MANY_S = 5.0
_TEXT = 200


class Change:
    """Texts of the value before and after; `places` are those that changed in an object that stayed the same."""

    def __init__(self, old, new, places, is_same_object):
        self.old, self.new, self.places, self.is_same_object = old, new, places, is_same_object


class Watched:
    """An expression in the context of a frame, and its last known value.

    `limited(call, seconds)` evaluates what can't be read without code of the program. Raises SyntaxError.
    """

    def __init__(self, text, condition, frame, limited, at_location=False):
        self.text, self.condition = text, condition
        self._limited = limited
        self._code = compile(text.strip(), "<watch>", "eval")
        self._condition = compile(condition, "<condition>", "eval") if condition else None
        self._spent, self._count, self._is_slow = 0.0, 0, False
        tree = parse(text)
        path = path_of(tree)
        if path and path[1] and path[1][-1][0] == "len" and "len" in {**frame.f_globals, **frame.f_locals}:
            path = None  # not the builtin
        held = self._hold(tree, frame) if at_location else None
        self._root, steps = held or self._begin(path, tree, frame)
        # Names in it: a line that assigns to one of them may have changed the value.
        self.names = {getattr(node, "id", getattr(node, "attr", None)) for node in ast.walk(tree)}
        self._read = None if path is None and held is None else self._root.read
        self._direct = self._find_direct(steps)
        for kind, what in steps if self._read else ():
            self._read = STEPS[kind](self._read, what)
        self.rebase()

    def _begin(self, path, tree, frame):
        """Return the root of a path and the steps from there."""
        scope = frame.f_globals
        name, steps = path or (None, [])
        is_local = frame.f_locals is not scope
        if path is None:
            names = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
            is_local = is_local and not names.isdisjoint(local_names(frame))
            return (InFrame(frame, None) if is_local else InScope(scope, None)), []
        is_local = is_local and name in local_names(frame)
        value = frame.f_locals.get(name, UNDEFINED) if is_local else scope.get(name, UNDEFINED)
        holds = any(kind != "len" for kind, _ in steps) and value is not UNDEFINED
        if holds and type(value) not in ATOMS and type(value) is not tuple:
            return OnObject(value, scope, name), steps
        return (InFrame(frame, name) if is_local else InScope(scope, name)), steps

    def _hold(self, tree, frame):
        """Return the object that has the attribute or item now as the root, and the only step (gdb's `-l`)."""
        names, scope = frame.f_locals, frame.f_globals

        def value_of(node):
            code = compile(ast.fix_missing_locations(ast.Expression(node)), "<watch>", "eval")
            return eval(code, await_eval.nested_scope(code, scope, names), names)

        if isinstance(tree, ast.Attribute):
            holder, step = value_of(tree.value), ("attribute", tree.attr)
        elif isinstance(tree, ast.Subscript):
            index = tree.slice
            if type(index).__name__ == "Index":
                index = getattr(index, "value", index)
            holder, step = value_of(tree.value), ("item", value_of(index))
        else:
            return None
        # If the step needs code of the program, that is run on these names.
        self._code = compile(
            "holder." + step[1] if step[0] == "attribute" else "holder[key]", "<watch>", "eval"
        )
        return OnObject(holder, scope, "holder", key=step[1]), [step]

    @property
    def frame(self):
        """The frame with whose return the watch ends, or None."""
        return self._root.frame

    @property
    def object_name(self):
        """Class of the object that is held, or None."""
        return type(self._root.read()).__qualname__ if type(self._root) is OnObject else None

    @property
    def is_computed(self):
        """True if the program's code must run for the value."""
        return self._read is None

    @property
    def only_code(self):
        """The code whose lines alone can change the value, or None."""
        root = self._root
        if type(root) is not InFrame or self._read != root.read or self._parts:
            return None
        code = root.frame.f_code
        return code if self.text in code.co_varnames and self.text not in code.co_cellvars else None

    @property
    def is_safe(self):
        """True if `differs` raises nothing."""
        return self._read is not None and self._direct is not None and type(self._get) is not weakref.ref

    # -- the value

    def _value(self):
        if self._read is not None:
            try:
                return self._read()
            except Computed:
                self._read = None
            except Ended:
                raise
            except Exception:  # an unhashable key
                return UNDEFINED
        return self._compute(self._code)

    def _compute(self, code):
        """Run code of the program. Raises Overtime, Ended."""
        if self._is_slow:
            raise Overtime()
        scope, names = self._root.scopes()
        began = time.thread_time()
        self._is_slow = True
        try:
            scope = await_eval.nested_scope(code, scope, names)
            value = self._limited(lambda: eval(code, scope, names), EVALUATION_S)
        except (Overtime, Ended):
            raise
        except BaseException:  # code of the user
            value = UNDEFINED
        self._spent += time.thread_time() - began
        self._count += 1
        self._is_slow = self._spent > max(_MANY_S, self._count * MEAN_S)
        return value

    def rebase(self):
        """Take the present value as the known one. Raises Overtime, Ended."""
        self._take(self._value())

    def _take(self, value):
        self.shown = str(value) if value is UNDEFINED else safe_repr.show(value, _TEXT)
        if self._read is None:
            self._get, self._parts, self._labels = reference(None), (), ()
            self._mark = mark(value)
            self.differs = self._computes_another
            return
        self._mark = None
        self._get = reference(value)
        self._parts, self._labels = collect_parts(value)
        self.differs = self._comparison(None if type(self._get) is weakref.ref else value)

    def _find_direct(self, steps):
        """Return (get, name) for an attribute of an object that needs one step, else None."""
        if type(self._root) is not OnObject or len(steps) != 1 or steps[0][0] != "attribute":
            return None
        kind = type(self._root.read())
        if issubclass(kind, OPAQUE) or not is_plain(kind, steps[0][1]):
            return None
        return self._root.get, steps[0][1]

    def _comparison(self, known):
        """Return the function that compares the present value with the known one, as fast as it can be.

        It is called at each line.
        """
        read, parts, get, undefined = self._read, self._parts, self._get, UNDEFINED
        if type(get) is weakref.ref:
            return lambda: read() is not get() or (parts and have_changed(parts))
        if self._direct is None:
            return lambda: read() is not known or (parts and have_changed(parts))
        holder, name = self._direct
        if parts:
            return lambda: getattr(holder(), name, undefined) is not known or have_changed(parts)
        return lambda: getattr(holder(), name, undefined) is not known

    def _computes_another(self):
        return mark(self._value()) != self._mark

    def change(self):
        """Return the Change since the value was known, or None, and take the present one. Raises Overtime, Ended."""
        value, old = self._value(), self.shown
        if self._read is None:
            known = self._mark
            self._take(value)
            # Without a mark the value could be read until now.
            changed = self._mark != known if known is not None else self.shown != old
            return Change(old, self.shown, [], False) if changed else None
        before = self._get()
        same = before is value
        if not same and before is not None and are_equal(before, value):
            self._take(value)
            return None
        if same and not (self._parts and have_changed(self._parts)):
            return None
        places = changed_places(self._parts, self._labels) if same else []
        self._take(value)
        return Change(old, self.shown, places, same)

    def holds(self):
        """Evaluate the condition. Returns (result, None), or (True, the error)."""
        condition = self._condition
        if condition is None:
            return True, None
        scope, names = self._root.scopes()
        try:
            scope = await_eval.nested_scope(condition, scope, names)
            return bool(self._limited(lambda: eval(condition, scope, names), EVALUATION_S)), None
        except BaseException as exc:  # code of the user; as in pdb, when it fails we stop
            return True, f"{type(exc).__name__}: {safe_repr.text_of(exc)}"
