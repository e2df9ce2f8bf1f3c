"""The command and the interpreter that a session takes where nobody names one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bubblewrap import LOCAL
from tests.e2e.client import pdbox

pytestmark = pytest.mark.anyio

MANAGE = """
import os, sys
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""


@pytest.mark.parametrize("folder", ["", "site/"])
async def test_a_django_project_is_tested_by_its_own_runner(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder / "shop").mkdir(parents=True)
    (tmp_path / folder / "manage.py").write_text(MANAGE)
    (tmp_path / folder / "shop" / "tests.py").write_text("")
    unsafe = [*LOCAL]
    async with pdbox("--repo", str(tmp_path), *unsafe) as session:
        expected = "cd site && python manage.py test" if folder else "python manage.py test"
        assert expected in await session.text("start_session")


async def test_a_virtual_environment_that_set_up_made_is_the_one_that_is_used(
    tmp_path: Path, backend: list[str]
) -> None:
    (tmp_path / "app.py").write_text("import sys\nprint('in', sys.prefix)\nsys.exit(1)\n")
    own = "import sys\nprint('own pytest of', sys.prefix)\n"
    site = "$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))')"
    setup = ["python -m venv --without-pip .venv", f'echo "$PYTEST" > {site}/pytest.py']
    async with pdbox("--repo", str(tmp_path), *backend) as session:
        await session.text("start_session", setup=setup, env={"PYTEST": own}, entrypoint="python app.py")
        assert "/.venv\n" in await session.text("eval")
        assert "/.venv'\n" in await session.text("pdb", command="n\np sys.prefix")
        assert "own pytest of" in await session.text("eval", entrypoint="python -m pytest -q; exit 1")
        assert "/.venv\n" in await session.text("bash", command="python app.py")
