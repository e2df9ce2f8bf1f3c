import json
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from tools._budget import LIMIT, Answer, Grows, Omitted, data_of, fit


class Sample(Answer):
    name: str
    head: Annotated[str, Grows("head", "Ask for head.")] = ""
    ends: Annotated[str, Grows("both")] = ""
    items: Annotated[list[str], Grows("head", unit="items")] = Field(default_factory=list[str])
    last: Annotated[list[str], Grows("tail", unit="lines")] = Field(default_factory=list[str])


def render(sample: Sample) -> str:
    return "\n".join([sample.name, sample.head, sample.ends, *sample.items, *sample.last])


def length(answer: Answer) -> int:
    return len(json.dumps(data_of(answer), ensure_ascii=False, separators=(",", ":")))


def test_short_answer_is_left_alone() -> None:
    sample = Sample(name="x", head="abc")
    assert fit(sample, render) == (sample, "x\nabc\n\n".rstrip("\n"))


def test_cut_text_says_how_much_and_how_to_get_it() -> None:
    answer, text = fit(Sample(name="x", head="line\n" * 10_000), render)
    (omitted,) = answer.omitted
    kept = answer.head.split("[…")[0]
    assert omitted.count == 50_000 - len(kept)
    assert text.endswith(f"(left out: {omitted.count:,} characters of head. Ask for head.)")


def test_both_ends_of_a_text_stay() -> None:
    answer, _ = fit(Sample(name="x", ends="first\n" + "middle\n" * 5_000 + "last\n"), render)
    assert answer.ends.startswith("first\n")
    assert answer.ends.endswith("last\n")


def test_items_are_counted_exactly() -> None:
    answer, _ = fit(Sample(name="x", items=[f"item {number}" for number in range(5_000)]), render)
    assert answer.omitted == [Omitted(field="items", count=5_000 - len(answer.items), unit="items")]
    assert answer.items[-1] == f"item {len(answer.items) - 1}"


def test_tail_of_a_list_stays() -> None:
    answer, _ = fit(Sample(name="x", last=[str(number) for number in range(5_000)]), render)
    assert answer.last[-1] == "4999"


def test_small_field_is_not_cut_for_a_large_one() -> None:
    answer, _ = fit(Sample(name="x", head="small", ends="large " * 10_000), render)
    assert answer.head == "small"


def test_as_much_as_fits_is_kept() -> None:
    answer, text = fit(Sample(name="x", head="y" * 100_000), render)
    assert LIMIT - 200 < max(len(text), length(answer)) <= LIMIT


def test_a_name_that_never_ends_is_clipped_too() -> None:
    answer, text = fit(Sample(name="n" * 100_000), render)
    assert max(len(text), length(answer)) <= LIMIT


def test_lone_surrogates_become_escapes() -> None:
    answer, text = fit(Sample(name="a\ud800b"), render)
    assert text.startswith("a\\ud800b")
    assert answer.model_dump_json()


@pytest.mark.parametrize("limit", [400, LIMIT, 30_000])
@given(
    head=st.text(max_size=500).map(lambda text: text * 40),
    ends=st.text(max_size=500).map(lambda text: text * 40),
    items=st.lists(st.text(max_size=300), max_size=100),
)
def test_every_answer_fits(limit: int, head: str, ends: str, items: list[str]) -> None:
    answer, text = fit(Sample(name="x", head=head, ends=ends, items=items), render, limit)
    assert len(text) <= limit
    assert length(answer) <= limit
    text.encode()
