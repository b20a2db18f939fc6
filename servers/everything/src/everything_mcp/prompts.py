"""Prompts: plain, with arguments, a resource, an image or elicitation; and completion."""

from __future__ import annotations

from mcpfactory_runtime import Context, EmbeddedText, Image, Message
from mcpfactory_runtime.server.inputs import Argument, Reference

from .media import PNG


async def test_simple_prompt() -> str:
    """Return a fixed text."""
    return "This is a simple prompt for testing."


async def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Return the arguments in a text.

    Args:
        arg1: the first argument
        arg2: the second argument
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


async def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:
    """Include a resource.

    Args:
        resourceUri: the resource's URI
    """
    return [
        Message(EmbeddedText(resourceUri, "Embedded resource content for testing.")),
        Message("Please process the embedded resource above."),
    ]


async def test_prompt_with_image() -> list[Message]:
    """Include an image."""
    return [Message(Image(PNG, "image/png")), Message("Please analyze the image above.")]


async def test_input_required_result_prompt(ctx: Context) -> str:
    """Ask the user for context, and return a prompt with it."""
    form = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}
    answer = await ctx.elicit("What context should the prompt use?", form, key="user_context")
    return f"Use this context: {answer.content['context'] if answer.accepted else 'none'}"


async def complete(ref: Reference, argument: Argument) -> list[str]:
    """Suggest values that start with the current input."""
    words = ["paris", "park", "party", "london", "longitude"]
    return [word for word in words if word.startswith(argument.value)]


PROMPTS = (
    test_simple_prompt,
    test_prompt_with_arguments,
    test_prompt_with_embedded_resource,
    test_prompt_with_image,
    test_input_required_result_prompt,
)
