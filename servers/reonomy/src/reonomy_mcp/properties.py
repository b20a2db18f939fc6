"""Tools of ours: what fits with its details, what is at an address, what sold for how much, who owns it, and which loans end soon."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from statistics import median
from typing import Annotated, Any, Final, Literal

from mcpfactory_runtime import Context, ToolError
from pydantic import Field

from .credits import details

__all__ = ["comparable_sales", "find_properties", "look_up_address", "maturing_mortgages", "who_owns"]

DetailType = Literal["basic", "mortgages", "ownership", "reported_owner", "sales", "taxes", "tenants"]
State = Annotated[str, Field(pattern=r"^[A-Z]{2}$")]
Most = Annotated[int, Field(ge=1, le=1000)]
Ids = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1, max_length=1000)]
_PAGE: Final = 250


@dataclass(frozen=True, slots=True)
class Found:
    """Properties with their details; `total` is how many fit, `shown` how many of them are here."""

    total: int
    shown: int
    properties: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Sale:
    """A sale; `per_sqft` is None where price or area is not known."""

    id: str
    address: str
    sold: str
    price: float
    per_sqft: float | None


@dataclass(frozen=True, slots=True)
class Sales:
    """Sales, the latest first, and their medians; `without` properties have no known price."""

    median_price: float | None
    median_per_sqft: float | None
    without: int
    sales: list[Sale]


@dataclass(frozen=True, slots=True)
class Owner:
    """Somebody and the properties that they are reported to own."""

    name: str
    properties: list[str]


@dataclass(frozen=True, slots=True)
class Loan:
    """A mortgage that ends."""

    id: str
    address: str
    ends: str
    lender: str
    amount: float | None


async def find_properties(
    ctx: Context,
    state: State,
    city: str = "",
    assetCategory: str = "",
    minBuildingArea: Annotated[float, Field(ge=0)] | None = None,
    maxBuildingArea: Annotated[float, Field(ge=0)] | None = None,
    minYearBuilt: int | None = None,
    maxYearBuilt: int | None = None,
    minSalesPrice: Annotated[float, Field(ge=0)] | None = None,
    maxSalesPrice: Annotated[float, Field(ge=0)] | None = None,
    soldSince: date | None = None,
    detailTypes: list[DetailType] | None = None,
    most: Most = 25,
    confirm: str = "",
) -> Found:
    """Find properties by place, kind, size, year and last sale, with their details. Each property that is shown is billed.

    Args:
        state: in two letters.
        city: its name.
        assetCategory: such as Office, Retail, Industrial, Multifamily.
        minBuildingArea: square feet.
        maxBuildingArea: square feet.
        minYearBuilt: the year.
        maxYearBuilt: the year.
        minSalesPrice: of the last sale, in dollars.
        maxSalesPrice: of the last sale, in dollars.
        soldSince: last sold on this day or later.
        detailTypes: what is wanted besides basic details.
        most: so many are shown.
        confirm: where nobody can be asked, the sentence that the refusal names, once a person has agreed to it.
    """
    settings: dict[str, Any] = {"locations": [_place(state, city)]}
    if assetCategory:
        settings["asset_category"] = [assetCategory]
    for name, low, high in (
        ("building_area", minBuildingArea, maxBuildingArea),
        ("year_built", minYearBuilt, maxYearBuilt),
        ("sales_price", minSalesPrice, maxSalesPrice),
        ("sales_date", soldSince and str(soldSince), None),
    ):
        if limits := {key: value for key, value in (("min", low), ("max", high)) if value is not None}:
            settings[name] = limits
    total, ids = await _ids(ctx, settings, most)
    types: list[str] = list(dict.fromkeys(["basic", *(detailTypes or [])]))
    rows = await details(ctx, ids, types, confirm) if ids else []
    return Found(total, len(rows), rows)


async def look_up_address(
    street: Annotated[str, Field(min_length=1)],
    city: str,
    state: State,
    ctx: Context,
    zip: Annotated[str, Field(pattern=r"^([0-9]{5})?$")] = "",
    detailTypes: list[DetailType] | None = None,
) -> Found:
    """Say what is known of the property at an address. One property is billed.

    Args:
        street: house number and street.
        city: the city.
        state: in two letters.
        zip: the ZIP code.
        detailTypes: what is wanted; basic details, sales, mortgages and the reported owner by default.
    """
    asked = {"address_line_1": street, "address_city": city, "address_state": state, "address_postal": zip}
    found = await ctx.call("find_address", **{name: value for name, value in asked.items() if value})
    items = found.get("items") or []
    if not items:
        raise ToolError(f"There is no property at {street}, {city} {state}.\nhint: leave out suite and floor")
    types = detailTypes or ["basic", "sales", "mortgages", "reported_owner"]
    row = await ctx.call("get_property", property_id=items[0]["id"], detail_type=types)
    return Found(len(items), 1, [row])


async def comparable_sales(ctx: Context, ids: Ids, months: int = 36, confirm: str = "") -> Sales:
    """Compare what properties sold for: the latest sale of each, price per square foot, medians. Each property is billed.

    Args:
        ids: of the properties, such as search_properties gives.
        months: only sales of so many months.
        confirm: where nobody can be asked, the sentence that the refusal names, once a person has agreed to it.
    """
    since = str(datetime.now(UTC).date() - timedelta(days=30 * months))
    rows = await details(ctx, ids, ["basic", "sales"], confirm)
    sales = []
    for row in rows:
        price, sold, area = row.get("sales_price"), (row.get("sales_date") or "")[:10], row.get("building_area")
        if price and sold >= since:
            sales.append(Sale(row["id"], _address(row), sold, price, round(price / area, 2) if area else None))
    per = [sale.per_sqft for sale in sales if sale.per_sqft is not None]
    return Sales(
        median([sale.price for sale in sales]) if sales else None,
        median(per) if per else None,
        len(rows) - len(sales),
        sorted(sales, key=lambda sale: sale.sold, reverse=True),
    )


async def who_owns(ctx: Context, ids: Ids, confirm: str = "") -> list[Owner]:
    """Say who is reported to own properties, the owners of most first. Each property is billed.

    Args:
        ids: of the properties.
        confirm: where nobody can be asked, the sentence that the refusal names, once a person has agreed to it.
    """
    owned: dict[str, list[str]] = defaultdict(list)
    for row in await details(ctx, ids, ["basic", "reported_owner"], confirm):
        for name in [one.get("name") or "" for one in row.get("reported_owners") or []] or ["(not known)"]:
            owned[name].append(f"{_address(row)} ({row['id']})")
    return sorted(
        (Owner(name, places) for name, places in owned.items()), key=lambda one: (-len(one.properties), one.name)
    )


async def maturing_mortgages(
    ctx: Context, ids: Ids, months: Annotated[int, Field(ge=1, le=120)] = 12, confirm: str = ""
) -> list[Loan]:
    """Say which mortgages of properties end soon, the next first. Each property is billed.

    Args:
        ids: of the properties.
        months: within so many.
        confirm: where nobody can be asked, the sentence that the refusal names, once a person has agreed to it.
    """
    today = datetime.now(UTC).date()
    until = str(today + timedelta(days=30 * months))
    loans = []
    for row in await details(ctx, ids, ["basic", "mortgages"], confirm):
        for loan in row.get("mortgages") or []:
            ends = str(loan.get("maturity_date") or loan.get("mortgage_maturity_date") or "")[:10]
            if str(today) <= ends <= until:
                lender = loan.get("lender_name") or loan.get("mortgage_lender_name") or ""
                amount = loan.get("amount") or loan.get("mortgage_amount")
                loans.append(Loan(row["id"], _address(row), ends, lender, amount))
    return sorted(loans, key=lambda loan: loan.ends)


async def _ids(ctx: Context, settings: dict[str, Any], most: int) -> tuple[int, list[str]]:
    """Return how many properties fit, and the ids of the first ones."""
    ids: list[str] = []
    token: dict[str, str] = {}
    while True:
        page = await ctx.call("search_properties", settings=settings, limit=min(_PAGE, most - len(ids)), **token)
        ids += [one["id"] for one in page.get("items") or []]
        if len(ids) >= most or not page.get("items") or not page.get("search_token"):
            return max(int(page.get("count") or 0), len(ids)), ids[:most]
        token = {"search_token": page["search_token"]}


def _place(state: str, city: str) -> dict[str, str]:
    return {"kind": "city", "state": state, "text": city} if city else {"kind": "state", "state": state, "text": state}


def _address(row: dict[str, Any]) -> str:
    return ", ".join(str(row[name]) for name in ("address_line1", "city", "state") if row.get(name))
