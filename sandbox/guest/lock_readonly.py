"""Makes read-only files root's, so that no program of the session can change them.

Started by root, without capabilities, as `python -I -S -u -c SOURCE WORKSPACE [ASIDE]`. Without ASIDE it opens the
workspace, which is root's, to all users. With it, it moves what lies below that folder of the workspace into the
workspace. Prints `done`.

The sandbox's user made what is moved: no link is followed, and all that does not begin as a file, folder or link of
the folder is an error.
"""

import os
import stat
import sys

PIECE = 1 << 20
OPEN = 0o1777
"""Mode of folders: all users can create files, and only root can remove or rename root's."""
PLACE = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
CONTENT = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


def main():
    """Open the workspace, or move the files."""
    os.umask(0)
    workspace = os.open(sys.argv[1], PLACE)
    if len(sys.argv) > 2:
        source = workspace
        for name in sys.argv[2].split("/"):
            source = os.open(name, PLACE, dir_fd=source)
        move_all(source, workspace)
    else:
        # Engines give a tmpfs the mode of the image's folder below it, even if another one was requested.
        os.fchmod(workspace, OPEN)
    print("done", flush=True)


def move_all(source, target):
    """Move the entries of the open folder `source` into the open folder `target`."""
    with os.scandir(source) as entries:
        kinds = [(one.name, one.is_dir(follow_symlinks=False), one.is_symlink()) for one in entries]
    for name, is_folder, is_link in kinds:
        if is_folder:
            move_folder(name, source, target)
        elif is_link:
            os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
            os.unlink(name, dir_fd=source)
        else:
            copy_file(name, source, target)
            os.unlink(
                name, dir_fd=source
            )  # at once, so that there is never space needed for all of them twice


def move_folder(name, source, target):
    """Make a folder anew, and move the entries of the old one into it."""
    os.mkdir(name, 0o700, dir_fd=target)
    old, new = os.open(name, PLACE, dir_fd=source), os.open(name, PLACE, dir_fd=target)
    try:
        os.fchmod(new, OPEN)  # on some systems mkdir omits the sticky bit
        move_all(old, new)
    finally:
        os.close(old)
        os.close(new)
    os.rmdir(name, dir_fd=source)


def copy_file(name, source, target):
    """Copy a regular file with its time. Of its mode only the right to execute is kept."""
    old = os.open(name, CONTENT, dir_fd=source)
    new = -1
    try:
        info = os.fstat(old)
        if not stat.S_ISREG(info.st_mode):
            raise OSError("not a regular file")
        new = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=target)
        # Without file objects, which take half of the time for small files.
        while data := os.read(old, PIECE):
            while data:
                data = data[os.write(new, data) :]
        os.utime(new, ns=(info.st_mtime_ns, info.st_mtime_ns))
        os.fchmod(new, 0o555 if info.st_mode & 0o100 else 0o444)
    finally:
        os.close(old)
        if new != -1:
            os.close(new)


main()
