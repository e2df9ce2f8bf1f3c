"""What a client reads about sessions: those that it can use one by one, the rest as a number."""

from __future__ import annotations

from tools._tool import OwnSession
from tools.list_sessions import ListAnswer, render


def session(session_id: str | None, age_s: float) -> OwnSession:
    return OwnSession(session_id=session_id, state="stopped", age_s=age_s, place="p1", image="image")


def test_sessions_whose_handle_is_not_known_here_are_counted_in_one_line() -> None:
    own, others = session("a1", 61), [session(None, 60 * minutes) for minutes in (3, 36, 37)]
    assert render(ListAnswer(sessions=[own, *others])) == (
        "1 session:\n"
        "  a1: stopped, image, 1 min old, in p1\n"
        "3 sessions of other servers, the newest 3 min old; only the calls that opened them gave their session_id."
    )
    assert render(ListAnswer(sessions=others[:1])) == (
        "No sessions. `start_session` opens one.\n"
        "1 session of other servers, the newest 3 min old; only the calls that opened them gave their session_id."
    )
    assert render(ListAnswer(sessions=[own])).count("\n") == 1


def test_without_any_session_the_next_step_is_told() -> None:
    assert render(ListAnswer(sessions=[])) == "No sessions. `start_session` opens one."
