"""The verb of a name and the verb of a path: `calendar.events.insert`, `GET_DeleteVolume`, `/{id}/start`, `:cancel`."""

from __future__ import annotations

import re
from typing import Final

from mcpfactory_codegen.effects.verbs import NOT_FIRST, NOUN_HEADS, NOUNS_OF_ASKING, NOUNS_TOO, Said, phrasal, said_by
from mcpfactory_codegen.ir import ApiParameter
from mcpfactory_codegen.text import words

__all__ = ["action_of", "is_rpc", "of_ending", "of_joined", "of_name", "of_path", "without_method"]

_HUMP: Final = re.compile(r"[a-z][A-Z]")
_ACTION: Final = re.compile(r"[#?&](?:Action|action|operation|method|cmd|X-Amz-Target)=(?:[\w-]+\.)?([\w-]+)")
_FILE: Final = re.compile(
    r"\.(json|xml|csv|txt|html|pdf|yaml|yml|atom|rss|png|jpe?g|gif|svg|zip|php|aspx?|do|cgi|jsp)\Z", re.I
)
_DOTTED: Final = re.compile(r"/(?:[a-z][A-Za-z0-9]*\.)+[a-z][A-Za-z]*\Z")


def without_method(name: str, method: str) -> str:
    """Return a name without the method in front, which says nothing: `GET_DeleteVolume`, `post_users_id`, `PostTopups`.

    “get” says something as a word, unless it is written as the method.
    """
    found = re.match(r"([A-Za-z]+)[_./ -](?=.)|(Post|Put|Patch)(?=[A-Z])", name)
    said = found[0].strip("_./ -") if found else ""
    if found and said.upper() == method.upper() and (said.isupper() or said.lower() in {"post", "put", "patch"}):
        name = name[found.end() :]
    return re.sub(rf"[_./ -]{re.escape(method)}\Z", "", name, flags=re.I)


def of_name(name: str) -> tuple[Said, bool]:
    """Return the verb of a name, and whether it stands elsewhere than at the beginning."""
    parts = [part for part in re.split(r"[./:]", name) if words(part)]
    if not parts:
        return Said(), False
    own = parts[-1]
    if "_" in own and _HUMP.search(own):  # two spellings in one: Attachments_GetAttachment, admin_inviteRequests_list
        alone = (said_by(part.lower()) for part in own.split("_"))
        if exact := next((said for said in alone if said.kind and not said.weak), None):
            return exact, False
        return _of_words(_spelt(own.rpartition("_")[2]))
    return _of_words(_spelt(own))


def _spelt(name: str) -> list[str]:
    return [word for word in words(name) if not word.isdigit()]


def _of_words(found: list[str]) -> tuple[Said, bool]:
    """Return the verb of the words of a name: the first, else the last, else one between them."""
    lead = found
    while len(lead) > 1 and lead[0] in NOT_FIRST:
        lead = lead[1:]
    first = said_by(phrasal(lead)) if lead else Said()
    last = said_by(lead[-1]) if len(lead) > 1 and lead[-1] != "read" else Said()  # mark as read
    between = (said_by(word) for word in lead[1:-1])
    inner = next((one for one in between if one.clear and one.verb not in NOUNS_TOO), Said())
    if first.kind and first.kind != "shows" and not (first.changes and first.unclear):
        return first, False
    if last.clear and not (first.kind and last.unclear):
        return last, True
    if inner.kind:
        return inner, True
    if first.changes and len(lead) > 1 and lead[-1] in NOUN_HEADS and first.verb in NOUNS_TOO:
        return Said(first.kind, first.verb, weak=True), False
    return first, False


def of_ending(name: str) -> Said:
    """Return the change that a name ends with, where what it begins with may be a noun: `checkCreate`, `listUpdate`."""
    parts = [part for part in re.split(r"[./:]", name) if words(part)]
    found = _spelt(parts[-1]) if parts else []
    if len(found) < 2 or found[0] not in NOUNS_OF_ASKING:
        return Said()
    last = said_by(found[-1])
    return last if last.changes and not last.weak else Said()


def of_joined(name: str) -> Said:
    """Return the change in a name of two verbs: `searchAndCreate`, `get_or_create_user`."""
    found = words(name)
    for place, word in enumerate(found[1:-1], 1):
        said = said_by(found[place + 1])
        noun = said.weak or (said.unclear and found[-1] in NOUN_HEADS)
        if word in {"and", "or", "then"} and said.changes and not noun:
            return said
    return Said()


def is_rpc(path: str) -> bool:
    """Whether the path names the action, so that the method says nothing: `/#Action=DeleteVolume`, `/chat.postMessage`."""
    return bool(_ACTION.search(path) or (_DOTTED.search(path) and not _FILE.search(path)))


def action_of(parameter: ApiParameter) -> str:
    """Return the action that a parameter with one possible value names: `?Action=DeleteVolume`."""
    if parameter.place not in {"query", "header"} or parameter.name not in {"Action", "X-Amz-Target"}:
        return ""
    schema = parameter.schema if isinstance(parameter.schema, dict) else {}
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return str(values[0]) if isinstance(values, list) and len(values) == 1 else ""


def of_path(path: str) -> Said:
    """Return the verb that a path ends with: `/logout`, `:cancel`, `/{id}/start`, `#Action=DeleteVolume`."""
    if found := _ACTION.search(path):
        return _of_words(list(words(found[1])))[0]
    path = _FILE.sub("", path.partition("#")[0].partition("?")[0].rstrip("/"))
    before, _, segment = path.rpartition("/")
    literal = re.sub(r"^.*[}:.]", "", segment) if not segment.endswith("}") else ""
    found_words = [word for word in words(literal) if word not in NOT_FIRST] or list(words(literal))
    if not found_words:
        return Said()
    said = said_by(found_words[0])
    acted = ":" in segment or (before.endswith("}") and len(found_words) == 1)
    if len(found_words) > 1 and (said.kind == "" or said.unclear):
        return Said()
    return Said(said.kind, said.verb, weak=said.unclear and not acted)
