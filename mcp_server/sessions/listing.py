"""Descriptions of sessions for lists of them."""

from __future__ import annotations

from sandbox.errors import SandboxError
from sandbox.session.session import Session
from sandbox.spec import SandboxInfo
from tools._tool import OwnSession


async def describe(session: Session) -> OwnSession:
    """Describe an open session, even one whose sandbox does not answer."""
    try:
        info = await session.info()
    except SandboxError as exc:
        return OwnSession(
            session_id=session.handle, state=f"lost: {exc.message}", age_s=0, place=session.sandbox.place
        )
    return OwnSession(
        session_id=session.handle,
        state=info.state,
        age_s=round(info.age_s),
        place=info.place,
        image=info.image,
        isolation=info.isolation,
    )


def describe_left_behind(found: SandboxInfo) -> OwnSession:
    """Describe a session that another server left, whose handle is not known here."""
    return OwnSession(
        session_id=None,
        state="of another server",
        age_s=found.age_s,
        place=found.place,
        image=found.image,
    )
