"""The way back from the failure to a suspect, as a few links with values."""

from __future__ import annotations

from . import sites as kinds
from .aliases import change_name, change_text
from .events import is_container
from .safe_values import text_of
from .slicing import arguments_of, causes

OBJECT_ITSELF = "the object itself"
_SHOWN = (kinds.STORE, kinds.RETURN, kinds.YIELD, kinds.PARAMETER, kinds.ARGUMENT, kinds.ELEMENT)
_MAX_LINKS = 8
_MAX_ON = 100
_LOOK = 2


def build(events, path, place, score):
    """(links from the failure along `path` and on to where the value at its end came from, why it ended there, the event
    there).

    `place(event)` describes the line of an event, `score(site)` its suspicion.
    """
    path = path + _on(events, path[-1], set(path), score)
    links = []
    for number, event in enumerate(path):
        link = _link(events, event, place)
        if link is None:
            continue
        if number and events.site(event).kind == kinds.ARGUMENT:
            _take_name(link, events, path[number - 1], links)
        before = links[-1] if links else None
        if before is not None and (before["path"], before["line"]) == (link["path"], link["line"]):
            if before["kind"] == kinds.PARAMETER:
                links[-1] = link
            continue
        links.append(link)
    return _middle_out(links), _why_ended(events, path[-1]), path[-1]


def _take_name(link, events, parameter, links):
    """Tell a parameter at the call that gave it, under its own name."""
    site = events.site(parameter)
    if site.kind == kinds.PARAMETER:
        link["name"] = site.name
        if links and links[-1]["kind"] == kinds.PARAMETER:
            links.pop()


def _on(events, event, seen, score):
    """Follow the nearest and most suspect data cause from there on."""
    found = []
    for _ in range(_MAX_ON):
        every = [
            (weight - _promise(events, cause, event, score, _LOOK), -cause, cause)
            for cause, weight in causes(events, event)
            if cause is not None and cause not in seen and not _is_receiver(events, cause)
        ]
        following = [one for one in every if one[0] < 3] or _conditions(events, event, every)
        if not following:
            following = _before(events, event, seen)
        if not following:
            break
        event = min(following)[2]
        seen.add(event)
        found.append(event)
    return found


def _promise(events, event, seen_from, score, depth):
    """Highest score of the lines behind a cause, other than the line that it is seen from."""
    site, seen = events.site(event), events.site(seen_from)
    same = site.line == seen.line and site.scope is seen.scope
    best = 0.0 if same else score(site)
    if depth and best < 1.0:
        for cause, weight in causes(events, event):
            if cause is not None and weight < 3 and not _is_receiver(events, cause):
                best = max(best, 0.9 * _promise(events, cause, seen_from, score, depth - 1))
    return best


def _is_receiver(events, event):
    """True for the parameter `self`, which nearly everything depends on."""
    site = events.site(event)
    return site.kind == kinds.PARAMETER and site.name in ("self", "cls")


def _conditions(events, event, following):
    """The condition under which a literal was chosen."""
    if events.site(event).deps:
        return []
    return [one for one in following if events.site(one[2]).kind == kinds.TEST]


def _before(events, event, seen):
    """The event right before a literal: where an exception was raised that led here, perhaps."""
    before = event - 1
    if events.site(event).deps or before < 0 or before in seen:
        return []
    elsewhere = events.frame_of[before] != events.frame_of[event]
    if elsewhere and events.site(before).kind in (kinds.RETURN, kinds.YIELD):
        return []
    inside = events.entered.get(events.frame_of[before], -1) > events.entered.get(events.frame_of[event], -1)
    return [(9, -before, before)] if elsewhere and inside else []


def _middle_out(links):
    """Keep the first links of a long chain, and its end."""
    if len(links) <= _MAX_LINKS:
        return links
    return links[: _MAX_LINKS - 1] + links[-1:]


def _link(events, event, place):
    site, value = events.site(event), events.value_of[event]
    kind = site.kind
    name = site.name
    shown = text_of(value)
    if kind in kinds.SETTING:
        if site.extra[0] == "load" or site.extra[0] == "method":
            return None
        if site.extra[0] == "mutate" and not is_container(value):
            return None
        stored = events.stored_value_event(event)
        if kind == kinds.SETATTR:
            name = change_name(events, event)
        else:
            name = _change(events, event) if stored is None else events.site(stored).name
        if stored is not None and events.site(stored).kind == kinds.AUGMENTED:
            name += " by"
        shown = "" if stored is None else text_of(events.value_of[stored])
    elif kind == kinds.TEST:
        name = "condition"
    elif kind == kinds.RETURN:
        name = "{}()".format(site.scope.name.rpartition(".")[2])
    elif kind not in _SHOWN or name.startswith("@py_"):
        return None
    if is_container(value) and kind not in kinds.SETTING:
        if events.contents.get(id(value), [-1])[-1] > event:
            shown += " in the end"
    return dict(place(event), name=name[:100], value=shown[:200], kind=kind)


def _change(events, event):
    """A change with its arguments: `seen.append('x')`."""
    text = change_text(events, event)
    if events.site(event).kind != kinds.BASE:
        return text
    given = [text_of(events.value_of[argument], 1)[:40] for argument in arguments_of(events, event)]
    return "{}({})".format(text, ", ".join(given[:3]))


def _why_ended(events, event):
    site = events.site(event)
    missing = [
        dep
        for dep in site.deps
        if type(dep) is str and dep in site.scope.bound and events.writer(dep, event) is None
    ]
    if missing:
        return f"`{missing[0]}` has no recorded writer"
    if site.kind == kinds.PARAMETER:
        if site.name in ("self", "cls"):
            return ""
        return f"`{site.name}` is a literal, a default, or from code that is not recorded"
    if site.is_call:
        return "a call whose inside is not recorded"
    if site.deps in (("self",), ("cls",)):
        return OBJECT_ITSELF
    if not site.deps:
        return "a literal"
    return ""
