"""Set-up commands that remove the fix from the git history of a benchmark's image."""

from __future__ import annotations

_GIT = "git -c safe.directory='*'"
_KEPT = ("HEAD", "config*", "hooks", "index", "info", "modules", "objects", "shallow", "sharedindex.*")
"""Entries of a git directory that stay. Others, such as logs and `FETCH_HEAD`, tell of later commits."""
_OTHERS = " ".join(f"! -name '{name}'" for name in _KEPT)
_FORGET_LATER = f"""
    if [ -e .git ]; then
    GIT_DIR="$({_GIT} rev-parse --absolute-git-dir)" && export GIT_DIR && cd "$GIT_DIR" &&
    start="$({_GIT} rev-parse --verify 'HEAD^{{commit}}')" &&
    new="$(mktemp -d "${{HOME:-/tmp}}/history.XXXXXX")" && mkdir "$new/pack" &&
    {_GIT} for-each-ref --merged HEAD --format='%(objectname) %(refname)' > "$new/refs" &&
    find . -mindepth 1 -maxdepth 1 {_OTHERS} -exec rm -rf {{}} + && rm -f info/refs &&
    mkdir -p refs/heads refs/tags && cp "$new/refs" packed-refs &&
    {{ echo "$start" && cut -d ' ' -f 1 "$new/refs"; }} |
    GIT_ALTERNATE_OBJECT_DIRECTORIES="$GIT_DIR/objects" GIT_OBJECT_DIRECTORY="$new"
    {_GIT} pack-objects -q --revs --indexed-objects --missing=allow-any "$new/pack/pack" > "$new/name" &&
    if ls objects/pack/*.promisor > "$new/partial" 2>&1; then touch "$new/pack/pack-$(cat "$new/name").promisor"; fi &&
    rm -rf objects && mkdir -p objects/info && mv "$new/pack" objects/ && rm -r "$new" &&
    test "$({_GIT} rev-parse --verify HEAD)" = "$start";
    fi
"""
FORGET_LATER = " ".join(_FORGET_LATER.split())
"""Leaves the commit that is checked out and those before it; fails rather than leave something else.

Their objects are copied and all others removed: an object without a name can still be listed and read.
`git gc` is not enough, as it keeps all of a partial clone, of borrowed objects, and of packs marked to be kept.
"""
BEGIN_ANEW = (
    f"rm -rf .git && git init -q && {_GIT} add -A && {_GIT} -c user.name=pdbox -c user.email=pdbox"
    " -c commit.gpgsign=false commit -q --no-verify -m Start"
)
"""Makes a history of one commit with the files as they are, for a program whose earlier commits have the fix."""
