"""Token files, and the tokens of an issuer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcp_server.auth.token_file import TokenFile
from sandbox.errors import InvalidArgument

pytestmark = pytest.mark.anyio

LONG, OTHER = "t" * 16, "o" * 16


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "tokens"
    file.touch(mode)
    file.chmod(mode)
    file.write_text(text)
    return file


async def test_each_token_stands_for_its_principal(tmp_path: Path) -> None:
    tokens = TokenFile.read(written(tmp_path, f"# who\nalice {LONG} # laptop\n\n bob\t{OTHER}\n"), ["debug"])
    for token, principal in ((LONG, "alice"), (OTHER, "bob")):
        found = await tokens.verify_token(token)
        assert found is not None
        assert (found.client_id, found.subject, found.scopes) == (principal, principal, ["debug"])
    for token in ("", LONG[:-1], LONG + "t", "laptop", "alice", "ÿ"):
        assert await tokens.verify_token(token) is None


async def test_no_token_is_kept_in_memory(tmp_path: Path) -> None:
    tokens = TokenFile.read(written(tmp_path, f"alice {LONG}"))
    assert LONG not in repr(tokens)
    assert LONG not in repr(await tokens.verify_token(LONG))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "There is no token in"),
        ("# alice only\n", "There is no token in"),
        (f"{LONG}\n", "line 1: no principal"),
        ("alice ünïcödéünïcödé\n", "line 1: no principal"),
        (f"# one\nalice {LONG} more\n", "line 2: no principal"),
        ("alice secret\n", "line 1: no principal with a token of 16 ASCII characters or more"),
        (f"alice {LONG}\nbob {LONG}\n", "line 2: another principal has the same token"),
    ],
)
def test_a_file_of_another_form_is_refused_without_telling_its_tokens(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        TokenFile.read(written(tmp_path, text))
    assert said in str(caught.value)
    assert "secret" not in str(caught.value) and LONG not in str(caught.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = written(tmp_path, f"alice {LONG}", mode)
    with pytest.raises(InvalidArgument, match=rf"Others may read .*chmod 600 {file}"):
        TokenFile.read(file)


@pytest.mark.parametrize("name", ["missing", "."])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidArgument, match="can't be read"):
        TokenFile.read(tmp_path / name)


@pytest.mark.timeout(60)
def test_a_pipe_as_token_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tokens", 0o600)
    with pytest.raises(InvalidArgument, match="can't be read: Not a regular file"):
        TokenFile.read(tmp_path / "tokens")


def test_a_link_to_a_token_file_is_followed(tmp_path: Path) -> None:
    written(tmp_path, f"alice {LONG}")
    (tmp_path / "link").symlink_to("tokens")
    assert len(TokenFile.read(tmp_path / "link").entries) == 1


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, f"alice {LONG}")
    os.chown(file, 12345, -1)
    with pytest.raises(InvalidArgument, match="belongs to another user"):
        TokenFile.read(file)


def test_a_file_of_root_is_taken_unless_others_may_write_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, f"alice {LONG}", 0o644)
    if os.getuid() != 0:
        pytest.skip("the file must be root's")
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert len(TokenFile.read(file).entries) == 1
    file.chmod(0o666)
    with pytest.raises(InvalidArgument, match="Others may write"):
        TokenFile.read(file)
