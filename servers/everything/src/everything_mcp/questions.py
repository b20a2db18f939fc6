"""Tools that need input from the client: elicitation, sampling and roots, alone, together, and in several rounds.

Each tool works in both lifecycles. With the handshake, the server sends a request to the client. With per-request
metadata, the result asks for input, and the client repeats the call with it.
"""

from __future__ import annotations

from typing import Any

from mcpfactory_runtime import Context, Elicit, Roots, Sample, Text

_NAME: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def _form(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": []}


async def test_sampling(prompt: str, ctx: Context) -> Text:
    """Ask the client's model.

    Args:
        prompt: text for the model
    """
    answer = await ctx.sample(prompt, max_tokens=100)
    return Text(f"LLM response: {answer.text}")


async def test_elicitation(message: str, ctx: Context) -> Text:
    """Ask the user.

    Args:
        message: text for the user
    """
    answer = await ctx.elicit(
        message,
        _form(
            username={"type": "string", "description": "User's response"},
            email={"type": "string", "description": "User's email address"},
        ),
    )
    return Text(f"User response: action={answer.action}, content={answer.content}")


async def test_streaming_elicitation(ctx: Context) -> Text:
    """Report progress, then ask the user."""
    await ctx.report_progress(1, 2)
    answer = await ctx.elicit("Go on?", _form(confirm={"type": "boolean"}), key="confirm")
    return Text(f"action={answer.action}")


async def test_elicitation_sep1034_defaults(ctx: Context) -> Text:
    """Ask with a default for every type."""
    answer = await ctx.elicit(
        "Please review and update the form fields with defaults",
        _form(
            name={"type": "string", "description": "User name", "default": "John Doe"},
            age={"type": "integer", "description": "User age", "default": 30},
            score={"type": "number", "description": "User score", "default": 95.5},
            status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            verified={"type": "boolean", "description": "Verification status", "default": True},
        ),
    )
    return Text(f"Elicitation completed: action={answer.action}, content={answer.content}")


async def test_elicitation_sep1330_enums(ctx: Context) -> Text:
    """Ask with every kind of choice."""
    titled = [
        {"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)
    ]
    options = ["option1", "option2", "option3"]
    answer = await ctx.elicit(
        "Please select options from the enum fields",
        _form(
            untitledSingle={"type": "string", "enum": options},
            titledSingle={"type": "string", "oneOf": titled},
            legacyEnum={
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            untitledMulti={"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "enum": options}},
            titledMulti={"type": "array", "minItems": 1, "maxItems": 3, "items": {"anyOf": titled}},
        ),
    )
    return Text(f"Elicitation completed: action={answer.action}, content={answer.content}")


async def test_input_required_result_elicitation(ctx: Context) -> Text:
    """Ask for a name."""
    asked = Elicit("What is your name?", _NAME, unasked=True)  # the conformance suite sends a name before it is asked
    answer = (await ctx.ask(user_name=asked))["user_name"]
    return Text(f"Hello, {answer.content['name']}!" if answer.accepted else "Hello, whoever you are!")


async def test_input_required_result_sampling(ctx: Context) -> Text:
    """Ask the client's model for a capital."""
    answer = await ctx.sample("What is the capital of France?", max_tokens=100, key="capital_question")
    return Text(f"The model says: {answer.text}")


async def test_input_required_result_list_roots(ctx: Context) -> Text:
    """Ask for the roots."""
    roots = await ctx.roots(key="client_roots")
    return Text("Roots: " + ", ".join(root.uri for root in roots))


async def test_input_required_result_request_state(ctx: Context) -> Text:
    """Ask, and get the sealed state back."""
    await ctx.elicit("Please confirm", _form(ok={"type": "boolean"}), key="confirm")
    return Text("state-ok: the request state came back unchanged")


async def test_input_required_result_multiple_inputs(ctx: Context) -> Text:
    """Ask three things at once."""
    answers = await ctx.ask(
        user_name=Elicit("What is your name?", _NAME),
        greeting=Sample("Generate a greeting", max_tokens=50),
        client_roots=Roots(),
    )
    return Text(f"{answers['greeting'].text} ({answers['user_name'].action}, {len(answers['client_roots'])} roots)")


async def test_input_required_result_multi_round(ctx: Context) -> Text:
    """Ask twice, one after the other."""
    name = await ctx.elicit("Step 1: What is your name?", _form(name={"type": "string"}), key="step1")
    color = await ctx.elicit("Step 2: What is your favorite color?", _form(color={"type": "string"}), key="step2")
    return Text(f"{name.content} likes {color.content}")


async def test_input_required_result_tampered_state(ctx: Context) -> Text:
    """Ask, and refuse a state that was changed."""
    await ctx.elicit("Please confirm", _form(ok={"type": "boolean"}), key="confirm")
    return Text("The state was not changed.")


async def test_input_required_result_capabilities(ctx: Context) -> Text:
    """Ask only what the client can answer."""
    questions: dict[str, Any] = {}
    if "elicitation" in ctx.client_capabilities:
        questions["user_name"] = Elicit("What is your name?", _NAME)
    if "sampling" in ctx.client_capabilities:
        questions["greeting"] = Sample("Generate a greeting", max_tokens=50)
    if "roots" in ctx.client_capabilities:
        questions["client_roots"] = Roots()
    answers = await ctx.ask(**questions)
    return Text(f"Answered: {', '.join(answers) or 'nothing'}")


TOOLS = (
    test_sampling,
    test_elicitation,
    test_streaming_elicitation,
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
    test_input_required_result_elicitation,
    test_input_required_result_sampling,
    test_input_required_result_list_roots,
    test_input_required_result_request_state,
    test_input_required_result_multiple_inputs,
    test_input_required_result_multi_round,
    test_input_required_result_tampered_state,
    test_input_required_result_capabilities,
)
