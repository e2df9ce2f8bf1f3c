"""Saves what set-up commands changed in some folders as a tar stream, and repeats the changes in another sandbox.

Started as `python -I -u -c SOURCE save MARK FOLDER…` or `… load FOLDER…`. A change is an entry whose status was
changed (ctime, which programs can't set) since MARK was. Of each changed folder the names in it are saved,
too: what is not among them was removed.
"""

import io
import json
import os
import shutil
import stat
import sys
import tarfile

NAMES = "names"
WHOLE = b"\npdbox: whole\n"


def main():
    """Do what the first argument says."""
    if sys.argv[1] == "save":
        save(sys.argv[2], sys.argv[3:])
    else:
        load(sys.argv[2:])


def save(mark, roots):
    """Write the archive to standard output, and then `WHOLE`."""
    since = os.lstat(mark).st_ctime_ns
    os.unlink(mark)
    names = {}
    with open(1, "wb", closefd=False) as stream:
        with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive:
            for number, root in enumerate(roots):
                for path in changed(root, since):
                    name = os.path.join(str(number), os.path.relpath(path, root))
                    if os.path.isdir(path) and not os.path.islink(path):
                        names[name] = os.listdir(path)
                    if path != root:
                        add(archive, path, name)
            add_names(archive, names)
        stream.write(WHOLE)


def changed(root, since):
    """Yield the paths of changed entries, folders before what is in them."""
    for folder, folders, files in os.walk(root, onerror=fail):
        for path in [folder] + [os.path.join(folder, name) for name in files]:
            if os.lstat(path).st_ctime_ns >= since:
                yield path
        for path in [os.path.join(folder, name) for name in folders]:
            if os.path.islink(path) and os.lstat(path).st_ctime_ns >= since:
                yield path


def fail(error):
    """Stop: what can't be read can't be kept."""
    raise error


def add(archive, path, name):
    """Add one entry. Sockets are left out, they mean nothing without their process."""
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        archive.add(path, name, recursive=False)


def add_names(archive, names):
    """Add the names in changed folders as the last entry."""
    data = json.dumps(names).encode()
    info = tarfile.TarInfo(NAMES)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def load(roots):
    """Read the archive from standard input, repeat its changes, and print `done`."""
    folders = []
    # Unbuffered: a read returns the available bytes, and never waits for bytes after the end.
    with open(0, "rb", buffering=0) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            if member.name == NAMES:
                names = json.loads(archive.extractfile(member).read().decode())  # pyright: ignore[reportOptionalMemberAccess]
                continue
            if member.islnk():
                member.linkname = place(roots, member.linkname)
            path = place(roots, member.name)
            extract(archive, member, path)
            if member.isdir():
                folders.append((path, member))
    for name, kept in names.items():
        remove_others(place(roots, name), set(kept))
    for path, member in reversed(folders):
        os.chmod(path, member.mode)
        os.utime(path, (member.mtime, member.mtime))
    print("done", flush=True)


def place(roots, name):
    """Return the path that a name in the archive stands for."""
    number, _, rest = name.partition("/")
    return os.path.join(roots[int(number)], rest)


def extract(archive, member, path):
    """Extract one entry in place of an earlier one. Folders get their mode and time at the end."""
    if os.path.isdir(path) and not os.path.islink(path):
        if member.isdir():
            os.chmod(path, 0o700)
            return
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
    if member.isdir():
        os.mkdir(path, 0o700)
    elif member.issym():
        os.symlink(member.linkname, path)
    elif member.islnk():
        os.link(member.linkname, path)
    elif member.isfifo():
        os.mkfifo(path, member.mode)
    else:
        with open(path, "wb") as file:
            shutil.copyfileobj(archive.extractfile(member), file, 1 << 20)
        os.chmod(path, member.mode)
        os.utime(path, (member.mtime, member.mtime))


def remove_others(folder, kept):
    """Remove what is not in `kept`."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name in kept:
            continue
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)


main()
