"""`mcpfactory test` records a server against its API and replays it without."""

from __future__ import annotations

TESTS = """\
tests:
  - name: finds Austen
    tool: list_books
    arguments: {q: austen, max_price: 8}
    snapshot: true
    expect:
      - path: $.books[0].isbn
        equals: "9780141439518"
  - name: an unknown book is an error with the API's words
    tool: get_book
    arguments: {isbn: "9999999999999"}
    status: error
    contains: no book has the ISBN
"""


def test_a_recording_is_made_once_and_replayed_without_the_api(shop):
    assert shop("test", "bookshop").code == 3
    folder = shop.folder / "servers/bookshop/tests"
    (folder / "books.yaml").write_text(TESTS)
    (first, *_) = shop.at(shop.folder)("test", "bookshop", "--json").data
    (fault,) = first["faults"]
    assert "GET /books" in fault
    assert "hint: mcpfactory test bookshop --record" in fault
    made = shop("test", "bookshop", "--record", shop.environ["MCPF_BOOKSHOP_BASE_URL"])
    assert made.code == 0, made.out + made.err
    assert "bookworm" not in "".join(file.read_text() for file in folder.glob("books.*.json"))
    replayed = shop.at(shop.folder)("test", "bookshop")
    assert (replayed.code, replayed.out.splitlines()[-1]) == (0, "2 passed, 0 failed, 0 skipped")
    (folder / "books.yaml").write_text(TESTS.replace('"9780141439518"', "other"))
    failed = shop.at(shop.folder)("test", "bookshop", "--json")
    assert failed.code == 1
    assert [one["passed"] for one in failed.data] == [False, True]
    live = shop("test", "bookshop", "--live")
    assert "$.books[0].isbn" in live.out
    assert shop("test", "bookshop", "--live", "--record", "http://a.example").code == 2
