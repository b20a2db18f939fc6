"""Tools that combine searches and details: properties, addresses, sales, owners and maturing loans."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime
from statistics import median
from typing import Annotated, Any, Final, Literal

from mcpfactory_runtime import Context, ToolError
from pydantic import Field

from .answers import Row, day, items, months_later, number, objects, property_of
from .credits import agreed, details, permitted

__all__ = ["comparable_sales", "find_properties", "look_up_address", "maturing_mortgages", "who_owns"]

DetailType = Literal["basic", "mortgages", "ownership", "reported_owner", "sales", "taxes", "tenants"]
State = Annotated[str, Field(pattern=r"^[A-Z]{2}$")]
Most = Annotated[int, Field(ge=1, le=1000)]
Id = Annotated[str, Field(pattern=r"^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$")]
Ids = Annotated[list[Id], Field(min_length=1, max_length=1000)]
_PAGE: Final = 250  # largest page of a search


@dataclass(frozen=True, slots=True)
class Found:
    """Properties with details; `total` is the number of matches, `shown` of returned ones; `unread` has IDs that could not be read."""

    total: int
    shown: int
    properties: list[Row]
    unread: list[str]
    note: str


@dataclass(frozen=True, slots=True)
class AtAddress:
    """Property at an address; of `total` matches the first has details, `others` are without."""

    total: int
    properties: list[Row]
    others: list[Row]
    note: str


@dataclass(frozen=True, slots=True)
class Sale:
    """A sale; `per_sqft` is None if the area is unknown."""

    id: str
    address: str
    sold: str
    price: float
    per_sqft: float | None


@dataclass(frozen=True, slots=True)
class Sales:
    """Sales, the latest first, and medians; `without` counts properties without a known sale in these months."""

    median_price: float | None
    median_per_sqft: float | None
    without: int
    sales: list[Sale]
    unread: list[str]
    note: str


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner and the properties that they are reported to own."""

    name: str
    properties: list[str]


@dataclass(frozen=True, slots=True)
class Owners:
    """Owners, those with most properties first; `unread` has IDs that could not be read."""

    owners: list[Owner]
    unread: list[str]
    note: str


@dataclass(frozen=True, slots=True)
class Loan:
    """A mortgage with its maturity date."""

    id: str
    address: str
    ends: str
    lender: str
    amount: float | None


@dataclass(frozen=True, slots=True)
class Loans:
    """Maturing loans, the earliest first; `without_day` counts loans without a known maturity date."""

    loans: list[Loan]
    without_day: int
    unread: list[str]
    note: str


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
    """Find properties by place, kind, size, year and last sale, with details. Each returned property is billed.

    Args:
        state: state code of two letters.
        city: name of the city; empty for the whole state.
        assetCategory: category such as Office, Retail, Industrial, Multifamily.
        minBuildingArea: minimum area in square feet.
        maxBuildingArea: maximum area in square feet.
        minYearBuilt: earliest year of construction.
        maxYearBuilt: latest year of construction.
        minSalesPrice: minimum price of the last sale in dollars.
        maxSalesPrice: maximum price of the last sale in dollars.
        soldSince: earliest date of the last sale.
        detailTypes: details in addition to basic ones.
        most: maximum number of properties to return.
        confirm: code from a refusal, after the user has agreed; only if the client cannot ask the user.
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
    if not ids:
        return Found(total, 0, [], [], "")
    read = await details(ctx, ids, types, confirm)
    return Found(total, len(read.rows), read.rows, read.unread, read.note)


async def look_up_address(
    street: Annotated[str, Field(min_length=1)],
    city: str,
    state: State,
    ctx: Context,
    zip: Annotated[str, Field(pattern=r"^([0-9]{5})?$")] = "",
    detailTypes: list[DetailType] | None = None,
    confirm: str = "",
) -> AtAddress:
    """Look up the property at an address: who owns it, sales, mortgages. Of several matches, the first has details. One property is billed.

    Args:
        street: house number and street.
        city: name of the city.
        state: state code of two letters.
        zip: ZIP code of five digits.
        detailTypes: details to return [default: basic, sales, mortgages and reported owner].
        confirm: code from a refusal, after the user has agreed; only if the client cannot ask the user.
    """
    asked = {"address_line_1": street, "address_city": city, "address_state": state, "address_postal": zip}
    found = await ctx.call("find_address", **{name: value for name, value in asked.items() if value})
    fits = items(found, "find_address")
    if not fits:
        raise ToolError(f"There is no property at {street}, {city} {state}.\nhint: omit suite and floor")
    first, *others = fits
    await agreed(ctx, [first["id"]], confirm)
    types = detailTypes or ["basic", "sales", "mortgages", "reported_owner"]
    with permitted():
        row = property_of(await ctx.call("get_property", property_id=first["id"], detail_type=types))
    note = f"{len(fits)} properties match this address; this is the first. get_property reads another one, which is billed."
    return AtAddress(len(fits), [row], others, note if others else "")


async def comparable_sales(
    ctx: Context, ids: Ids, months: Annotated[int, Field(ge=1, le=600)] = 36, confirm: str = ""
) -> Sales:
    """Compare what properties sold for: the latest sale of each, price per square foot, medians. Each property is billed.

    Args:
        ids: property IDs, such as from search_properties.
        months: only sales of this number of past calendar months.
        confirm: code from a refusal, after the user has agreed; only if the client cannot ask the user.
    """
    since = months_later(datetime.now(UTC).date(), -months)
    read = await details(ctx, ids, ["basic", "sales"], confirm)
    sales = []
    for row in read.rows:
        price, sold, area = number(row.get("sales_price")), day(row.get("sales_date")), number(row.get("building_area"))
        if price and sold and sold >= since:
            sales.append(Sale(row["id"], _address(row), str(sold), price, round(price / area, 2) if area else None))
    per = [sale.per_sqft for sale in sales if sale.per_sqft is not None]
    return Sales(
        median([sale.price for sale in sales]) if sales else None,
        median(per) if per else None,
        len(read.rows) - len(sales),
        sorted(sales, key=lambda sale: sale.sold, reverse=True),
        read.unread,
        read.note,
    )


async def who_owns(ctx: Context, ids: Ids, confirm: str = "") -> Owners:
    """List who is reported to own properties, the owners with most first. Each property is billed.

    Args:
        ids: property IDs.
        confirm: code from a refusal, after the user has agreed; only if the client cannot ask the user.
    """
    owned: dict[str, list[str]] = defaultdict(list)
    read = await details(ctx, ids, ["basic", "reported_owner"], confirm)
    for row in read.rows:
        names = [one["name"] for one in objects(row.get("reported_owners")) if isinstance(one.get("name"), str)]
        for name in dict.fromkeys(name or "(not known)" for name in names or [""]):
            owned[name].append(f"{_address(row)} ({row['id']})")
    owners = [Owner(name, places) for name, places in owned.items()]
    return Owners(sorted(owners, key=lambda one: (-len(one.properties), one.name)), read.unread, read.note)


async def maturing_mortgages(
    ctx: Context, ids: Ids, months: Annotated[int, Field(ge=1, le=120)] = 12, confirm: str = ""
) -> Loans:
    """List mortgages of properties that mature soon, the earliest first. Each property is billed.

    Args:
        ids: property IDs.
        months: only loans that mature within this number of calendar months.
        confirm: code from a refusal, after the user has agreed; only if the client cannot ask the user.
    """
    today = datetime.now(UTC).date()
    until = months_later(today, months)
    read = await details(ctx, ids, ["basic", "mortgages"], confirm)
    loans, unknown = [], 0
    for row in read.rows:
        given = row.get("mortgages") or []
        for loan in given if isinstance(given, list) else [None]:
            ends = day(_first(loan, "maturity_date", "mortgage_maturity_date"))
            if ends is None:
                unknown += 1
            elif today <= ends <= until:
                lender = str(_first(loan, "lender_name", "mortgage_lender_name") or "")
                amount = number(_first(loan, "amount", "mortgage_amount"))
                loans.append(Loan(row["id"], _address(row), str(ends), lender, amount))
    return Loans(sorted(loans, key=lambda loan: loan.ends), unknown, read.unread, read.note)


def _first(row: Any, *names: str) -> Any:
    """Return the first non-empty member of these names, or None."""
    return next((row[name] for name in names if row.get(name)), None) if isinstance(row, dict) else None


async def _ids(ctx: Context, settings: dict[str, Any], most: int) -> tuple[int, list[str]]:
    """Return the number of matches, and the first `most` IDs. A repeated search token ends the loop."""
    ids: dict[str, None] = {}
    seen = {""}
    more: dict[str, str] = {}
    while True:
        page = await ctx.call("search_properties", settings=settings, limit=min(_PAGE, most - len(ids)), **more)
        rows = items(page, "search_properties", first=not more)
        ids |= {one["id"]: None for one in rows}
        token = page.get("search_token")
        if len(ids) >= most or not rows or not isinstance(token, str) or token in seen:
            return max(int(number(page.get("count")) or 0), len(ids)), list(ids)[:most]
        seen.add(token)
        more = {"search_token": token}


def _place(state: str, city: str) -> dict[str, str]:
    return {"kind": "city", "state": state, "text": city} if city else {"kind": "state", "state": state, "text": state}


def _address(row: dict[str, Any]) -> str:
    return ", ".join(str(row[name]) for name in ("address_line1", "city", "state") if row.get(name))
