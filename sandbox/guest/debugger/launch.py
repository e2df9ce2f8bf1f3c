"""Start a program under the debugger: `python launch.py CHANNEL_FD [DUMP_FD]`.

The program must see nothing of this: not on `sys.path`, not in `__main__`, not as a module that replaces its
own.
"""

import os
import sys


def _start():
    here = os.path.dirname(os.path.realpath(__file__))
    guest = os.path.dirname(here)
    numbers = [int(number) for number in sys.argv[1:3]]
    # `python -I` and `-P` put no script folder there.
    if sys.path and os.path.realpath(sys.path[0]) == here:
        del sys.path[0]
    path, loaded, write = sys.path[:], set(sys.modules), sys.dont_write_bytecode
    sys.dont_write_bytecode = False  # without bytecode each start would compile our modules again
    try:
        package = type(sys)("_pdbox")
        package.__path__ = [guest]
        sys.modules["_pdbox"] = package
        from _pdbox.paths import library_entries  # pyright: ignore[reportMissingImports] # just made

        # Only the standard library, so that a `json.py` on PYTHONPATH is not taken for it.
        sys.path[:] = library_entries(path)
        from _pdbox.debugger import main  # pyright: ignore[reportMissingImports]
    finally:
        sys.dont_write_bytecode = write
        sys.path[:] = path
    return main.prepare(numbers, loaded)


# The program gets this module as its `__main__`: nothing but the call may follow.
_start()(sys.modules["__main__"].__dict__)
