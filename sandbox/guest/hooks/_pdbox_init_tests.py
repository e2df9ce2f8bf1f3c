# ruff: noqa: INP001 - loaded by its name from here, and imported by the guest's packages
"""Has pytest before version 8 collect tests in an `__init__.py` that its command line names, as later versions do.

It takes such a file for its folder, finds no test in it, and refuses the id `tests/__init__.py::test_x`.
"""

import os
import sys

_NAME = "pdbox-init-tests"
_INIT = "__init__.py"


def collect_named(config, hookimpl, whole=False):
    """Register the plugin that does so, if the command line of `config` names such tests.

    `whole`: also for a file without a test's name. Not with workers of pytest-xdist: they choose tests by themselves.
    """
    if hasattr(sys.modules.get("_pytest.nodes"), "Directory") or _has_workers(config.option):
        return
    paths = {_file_of(str(word)) for word in config.args if whole or "::" in str(word)} - {None}
    if paths and not config.pluginmanager.hasplugin(_NAME):
        config.pluginmanager.register(_plugin(paths, config, hookimpl), _NAME)


def _has_workers(option):
    return getattr(option, "dist", "no") != "no" or bool(getattr(option, "numprocesses", None))


def _file_of(word):
    path = word.partition("::")[0]
    return os.path.realpath(path) if os.path.basename(path) == _INIT and os.path.isfile(path) else None


def _plugin(paths, config, hookimpl):
    def make(path, parent):
        if os.path.realpath(str(path)) not in paths:
            return None
        import pytest

        given = {"path" if hasattr(config, "stash") else "fspath": path}
        # `from_parent` came with pytest 5.4.
        return getattr(pytest.Module, "from_parent", pytest.Module)(parent=parent, **given)

    class Since7(object):
        @hookimpl(tryfirst=True)
        def pytest_pycollect_makemodule(self, module_path, parent):
            return make(module_path, parent)

    class Before7(object):
        @hookimpl(tryfirst=True)
        def pytest_pycollect_makemodule(self, path, parent):
            return make(path, parent)

    return Since7() if hasattr(config, "stash") else Before7()
