"""The pages that a person sees: marked up for screen readers, in both colour schemes, and with nothing of the client's as markup."""

from __future__ import annotations

from html.parser import HTMLParser

from mcpfactory_runtime.oauth_proxy.pages import consent_page

CONSENT = consent_page(
    server="Notes <b>",
    provider="GitHub",
    client='<script>alert(1)</script>"',
    page="https://example.com/client",
    redirect_uri="http://127.0.0.1:4312/callback?a=1&b=2",
    scopes=["notes.read"],
    action="/consent",
    request="signed",
)


class Outline(HTMLParser):
    """The elements of a page, each with those that it stands in, and the texts in them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.texts: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(self.open)))
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts[self.open[-1]] = self.texts.get(self.open[-1], "") + data

    def places(self, tag: str) -> list[tuple[str, ...]]:
        return [around for one, around in self.found if one == tag]


def test_what_the_client_says_of_itself_is_text_and_the_person_has_two_buttons():
    outline = Outline(CONSENT)
    assert outline.places("script") == outline.places("b") == []
    assert len(outline.places("button")) == 2
    assert outline.texts["button"] == "DenyAllow"
    assert '<script>alert(1)</script>"' in outline.texts["dd"]
    assert outline.texts["small"] == "this name is not verifiedhttp://127.0.0.1:4312/callback?a=1&b=2"
