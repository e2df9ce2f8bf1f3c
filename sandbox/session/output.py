"""Output of programs, as far as the sandbox stores it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from sandbox.session.guest_data import Long, Number, Request, validate

PAGE = 128 << 10


class OutputPage(BaseModel):
    """A piece of output. Offsets are bytes in program output, and characters in a stored answer."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    text: Long
    next: Number
    """Offset of the next piece."""
    omitted: Number = 0
    """Amount no longer stored between the requested start and the actual one."""
    total: Number = 0


class Output:
    """Output of the debugged program (its present or last run), and the last long answers by number."""

    def __init__(self, request: Request) -> None:
        self._request = request

    async def page(self, number: int | None = None, since: int = 0, size: int = PAGE) -> OutputPage:
        """Read at most `size` of answer `number`, or of the program's output, from `since` on.

        Raises:
            NotFound: nothing is stored under that number.
        """
        args = {"of": number, "since": since, "max": size}
        return validate(OutputPage, (await self._request("output.read", args))[0])

    async def whole(self, number: int | None = None) -> str:
        """Read everything that is stored. A first line gives the number of bytes that are not.

        Raises:
            NotFound: nothing is stored under that number.
        """
        page = first = await self.page(number)
        pieces = [page.text]
        while page.text and page.next < first.total:
            page = await self.page(number, page.next)
            pieces.append(page.text)
        head = f"[… {first.omitted:,} bytes were not kept …]\n" if first.omitted else ""
        return head + "".join(pieces)
