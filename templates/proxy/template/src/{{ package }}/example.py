"""A small upstream MCP server for MCPFACTORY_DEMO=1 and for tests."""

from __future__ import annotations

from mcpfactory_runtime import Context, Server

server = Server("example")
BOOKS = {"Emma": "novel", "Sense and Sensibility": "novel", "The Sense of Style": "essay", "Dune": "novel"}


@server.tool(annotations={"readOnlyHint": True})
def search(words: str, kind: str, limit: int = 100, trace: bool = False) -> list[str]:
    """Search titles.

    Args:
        words: part of the title.
        kind: novel or essay.
        limit: maximum number of results.
        trace: add a note on the search.
    """
    found = [title for title, of in BOOKS.items() if words.lower() in title.lower() and of == kind]
    return [*found[:limit], *(["traced"] if trace else [])]


@server.tool(annotations={"readOnlyHint": True})
def read_chapter(characters: int = 100) -> str:
    """Read a chapter of a chosen length.

    Args:
        characters: length of the chapter.
    """
    return "word " * (characters // 5)


@server.tool
async def order_book(title: str, ctx: Context) -> str:
    """Order a book, after the user agreed.

    Args:
        title: title of the book.
        ctx: context of the call, to ask the user.
    """
    form = {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}
    answer = await ctx.elicit(f"Order {title}?", form)
    return f"{title} is ordered" if answer.accepted and answer.content["yes"] else "not ordered"


@server.tool(annotations={"destructiveHint": True})
def delete_book(title: str) -> str:
    """Delete a book."""
    return f"{title} is gone"


@server.resource("books://all")
def titles() -> str:
    """All titles."""
    return "\n".join(BOOKS)


@server.prompt
def recommend(taste: str) -> str:
    """Ask for a recommendation."""
    return f"Recommend a book for somebody who likes {taste}."


if __name__ == "__main__":
    server.run()
