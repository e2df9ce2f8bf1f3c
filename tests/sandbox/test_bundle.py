"""The guest as it travels."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from pathlib import Path, PurePosixPath

from sandbox import bundle
from sandbox.base import Lifetime


def test_the_zip_is_the_same_however_its_files_were_made(tmp_path: Path) -> None:
    for name, stamp in (("one", 10**9), ("two", 2 * 10**9)):
        folder = tmp_path / name / "supervisor"
        folder.mkdir(parents=True)
        for file in ("main.py", "a.py") if name == "one" else ("a.py", "main.py"):
            (folder / file).write_text(f"# {file}\n", encoding="utf-8")
            os.utime(folder / file, (stamp, stamp))
        (folder / "notes.txt").write_text(name, encoding="utf-8")
    assert bundle.zipped(tmp_path / "one") == bundle.zipped(tmp_path / "two")


def test_the_package_is_a_length_and_a_zip_of_the_guest() -> None:
    (size,) = struct.unpack(">I", bundle.package()[:4])
    archive = zipfile.ZipFile(io.BytesIO(bundle.package()[4:]))
    assert size == len(bundle.package()) - 4
    names = archive.namelist()
    assert "pdbox_guest/supervisor/main.py" in names
    assert "pdbox_guest/relay.py" in names
    assert all(name.startswith("pdbox_guest/") and name.endswith(".py") for name in names)


def test_the_boot_source_fits_into_one_argument() -> None:
    boot = bundle.Boot(PurePosixPath("/run/pdbox"), PurePosixPath("/workspace"), Lifetime())
    # Linux takes 128 KiB in one argument.
    assert all(len(argument) < 100_000 for argument in boot.arguments())
    assert boot.relay_arguments()[-1] == "/run/pdbox/socket"
