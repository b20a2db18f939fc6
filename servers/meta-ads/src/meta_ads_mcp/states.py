"""Tools that activate, pause, archive and delete campaigns, ad sets and ads."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from mcpfactory_runtime import Context, ToolError
from pydantic import Field

from . import graph
from .accounts import currency_of
from .errors import GraphError, explain, next_step
from .metrics import number
from .money import stored, written

__all__ = ["delete_object", "set_status"]

Kind = Literal["campaign", "ad_set", "ad"]

_WORDS: Final[dict[str, tuple[str, str]]] = {
    "campaign": ("campaign", "campaigns"),
    "ad_set": ("ad set", "ad sets"),
    "ad": ("ad", "ads"),
}
_FIELDS: Final = "id,name,account_id,status,effective_status"
_OF_KIND: Final[dict[str, str]] = {"campaign": "objective", "ad_set": "optimization_goal", "ad": "adset_id"}
"""A field that only objects of this kind have. Meta refuses to read it from others."""
_MOST: Final = 50  # objects per call, one batch
_NAMED: Final = 5  # names in a question


def _fields(kind: Kind) -> str:
    return f"{_FIELDS},{_OF_KIND[kind]}" + ("" if kind == "ad" else ",daily_budget,lifetime_budget")


def _checked(node: str, kind: Kind, said: graph.Json | GraphError) -> graph.Json | GraphError:
    """Return an object if it is of the expected kind, else an error."""
    if isinstance(said, GraphError) and f"({_OF_KIND[kind]})" not in said.message:
        return said
    if not isinstance(said, GraphError) and said.get(_OF_KIND[kind]) and str(said.get("id")) == node:
        return said
    why = said.message if isinstance(said, GraphError) else f"it has no {_OF_KIND[kind]}"
    return GraphError(f"{node} is not of kind {_WORDS[kind][0]}: {why}", code=100)


def _counted(number: int, kind: Kind) -> str:
    return f"{number} {_WORDS[kind][number != 1]}"


async def _cost(found: list[graph.Json]) -> str:
    """Return the budgets of objects as a phrase, or "" if they have none."""
    currency = await currency_of(str(found[0].get("account_id", "")))
    sums = {
        name: sum(stored(one.get(f"{kind}_budget"), f"{kind}_budget") for one in found)
        for kind, name in {"daily": "a day", "lifetime": "in all"}.items()
    }
    return " and ".join(f"up to {written(minor, currency)} {name}" for name, minor in sums.items() if minor)


def _names(found: list[graph.Json]) -> str:
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(str(one.get("name")) for one in found[:_NAMED]) + more


async def _question(found: list[graph.Json], kind: Kind, status: str) -> str:
    which = f"{_counted(len(found), kind)} ({_names(found)})"
    if status == "ARCHIVED":
        return f"Archive {which}: that cannot be taken back."
    cost = await _cost(found)
    return f"Switch on {which}: money is spent from now on" + (f", {cost}." if cost else ".")


async def _read(ids: list[str], kind: Kind) -> tuple[list[graph.Json], list[dict[str, Any]]]:
    """Return the objects that could be read, and the errors of the others."""
    given = await graph.batch([graph.request("GET", one, fields=_fields(kind)) for one in ids])
    answers = [_checked(one, kind, said) for one, said in zip(ids, given, strict=True)]
    found = [one for one in answers if not isinstance(one, GraphError)]
    failed = [_failed(one, said) for one, said in zip(ids, answers, strict=True) if isinstance(said, GraphError)]
    return found, failed


def _failed(node: str, error: GraphError) -> dict[str, Any]:
    return {"id": node, "failed": explain(node, error), "next": next_step(error)}


async def set_status(
    kind: Annotated[Kind, Field(description="Kind of the objects.")],
    ids: Annotated[list[graph.NodeId], Field(description="IDs of one to fifty campaigns, ad sets or ads.")],
    status: Annotated[
        Literal["ACTIVE", "PAUSED", "ARCHIVED"],
        Field(description="ACTIVE switches on, PAUSED off; ARCHIVED is permanent."),
    ],
    ctx: Context,
    confirm: Annotated[
        str, Field(description="Code from this tool's refusal, after the user agreed to its question.")
    ] = "",
) -> dict[str, Any]:
    """Pause, resume or archive up to fifty campaigns, ad sets or ads at once; shows the state before and after of each.

    Pausing needs no consent. Activating spends money and archiving cannot be undone, so the user must agree.
    """
    wanted = list(dict.fromkeys(ids))
    if not 1 <= len(wanted) <= _MOST:
        raise ToolError(f"{len(wanted)} ids were given.\nhint: give one to {_MOST} at a time.")
    found, failed = await _read(wanted, kind)
    changing = [one for one in found if one.get("status") != status]
    if changing and status != "PAUSED":
        what, which = await _question(changing, kind, status), sorted(str(one["id"]) for one in changing)
        await ctx.consent(what, status, which, confirm=confirm, otherwise="Nothing was changed")
    answers = await graph.batch([graph.request("POST", str(one["id"]), status=status) for one in changing])
    refused = {
        str(one["id"]): said for one, said in zip(changing, answers, strict=True) if isinstance(said, GraphError)
    }
    done = [
        {"id": one["id"], "name": one.get("name"), "before": one.get("status"), "after": status}
        for one in found
        if str(one["id"]) not in refused
    ]
    failed += [_failed(node, said) for node, said in refused.items()]
    if not done:
        raise ToolError("Nothing was changed:\n" + "\n".join(one["failed"] for one in failed))
    return {"changed": len([one for one in done if one["before"] != status]), "objects": done, "failed": failed}


async def delete_object(
    kind: Annotated[Kind, Field(description="Kind of the object.")],
    object_id: Annotated[graph.NodeId, Field(description="ID of the campaign, ad set or ad.")],
    ctx: Context,
    confirm: Annotated[
        str, Field(description="Code from this tool's refusal, after the user agreed to its question.")
    ] = "",
) -> dict[str, Any]:
    """Delete a campaign, ad set or ad with all that is in it. It cannot be undone, so the user must agree; pausing is often enough."""
    found, failed = await _read([object_id], kind)
    if failed:
        raise ToolError(f"Nothing was deleted: {failed[0]['failed']}")
    (node,) = found
    rows = (await graph.get(object_id, "insights", fields="spend", date_preset="maximum"))["data"] or [{}]
    currency = await currency_of(str(node.get("account_id", "")))
    spent = f"{number(rows[0].get('spend')):,.2f} {currency}"
    inside = {"campaign": " with its ad sets and ads", "ad_set": " with its ads", "ad": ""}[kind]
    await ctx.consent(
        f"Delete the {_WORDS[kind][0]} {node.get('name')} ({object_id}){inside} for good; it has spent {spent}.",
        object_id,
        confirm=confirm,
        otherwise="Nothing was deleted",
    )
    await graph.delete(object_id)
    return {"deleted": object_id, "name": node.get("name"), "had_spent": spent}
