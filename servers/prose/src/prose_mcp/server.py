"""The MCP server prose: how long, how dense and how readable a text is, and what an edit changed."""

from __future__ import annotations

from mcpfactory_runtime import Server, ToolError

from . import __version__
from .measures import Comparison, Measures, compare, measure

server = Server(
    "prose",
    version=__version__,
    title="Prose",
    instructions="Use measure_text to judge a text, and compare_texts to see what an edit did to it.",
)

GUIDE = """\
# Plain writing

- One thought a sentence; most sentences under 20 words.
- Verbs instead of nouns made of verbs: decide, not "make a decision".
- Who does it comes first: "the server answers", not "an answer is given".
- Words that everybody uses; an abbreviation is spelled out the first time.
"""


@server.tool(annotations={"readOnlyHint": True, "openWorldHint": False})
def measure_text(text: str) -> Measures:
    """Count words and sentences of a text, and estimate how long it takes to read.

    Args:
        text: the text, in any language that puts spaces between words.
    """
    if not text.strip():
        raise ToolError("The text is empty: give at least one word.")
    return measure(text)


@server.tool(annotations={"readOnlyHint": True, "openWorldHint": False})
def compare_texts(before: str, after: str) -> Comparison:
    """Say what an edit changed: words saved, and whether sentences became shorter.

    Args:
        before: the text as it was.
        after: the text as it is now.
    """
    if not before.strip() or not after.strip():
        raise ToolError("One of the texts is empty: give at least one word in each.")
    return compare(before, after)


@server.resource("guide://plain-writing", mime_type="text/markdown")
def plain_writing() -> str:
    """Rules of thumb for plain writing."""
    return GUIDE


@server.prompt
def tighten(text: str, words: int = 100) -> str:
    """Ask for a shorter version of a text.

    Args:
        text: the text to shorten.
        words: how many words it may have afterwards.
    """
    return f"Rewrite the text below in at most {words} words. Keep every fact and the order of the thoughts.\n\n{text}"


def main() -> None:
    """Speak MCP on stdin and stdout, or with --http on a port."""
    server.run()
