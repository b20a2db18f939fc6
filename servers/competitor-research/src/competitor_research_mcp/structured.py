"""Structured data of a page (JSON-LD and microdata): products, offers and organizations of schema.org."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final
from urllib.parse import urljoin

from pydantic import BaseModel, Field

from .amounts import read_money
from .html import Element
from .text import clean

__all__ = ["Offer", "Organization", "Product", "StructuredData", "read_structured"]

_PRODUCTS: Final = frozenset(
    {"Product", "ProductGroup", "SoftwareApplication", "WebApplication", "MobileApplication", "Service"}
)
_OFFERS: Final = frozenset({"Offer", "AggregateOffer"})
_ORGANIZATIONS: Final = frozenset(
    {"Organization", "Corporation", "LocalBusiness", "OnlineBusiness", "OnlineStore", "Brand"}
)
_MOST: Final = 100  # items per kind
_DEEPEST: Final = 12  # nesting levels
_LARGEST: Final = 500_000  # characters per script

Item = Mapping[str, Any]


class Offer(BaseModel):
    """An offer with its price."""

    name: str = ""
    price: float | None = None
    highest_price: float | None = Field(default=None, description="upper end of a range; `price` is the lower end")
    currency: str = ""
    period: str = Field(default="", description="billing period, such as month")
    availability: str = ""
    valid_until: str = ""
    url: str = ""


class Product(BaseModel):
    """A product, a service or a program."""

    name: str = ""
    brand: str = ""
    sku: str = ""
    description: str = ""
    rating: float | None = None
    reviews: int | None = None
    offers: list[Offer] = Field(default_factory=list)


class Organization(BaseModel):
    """A company or a brand."""

    name: str = ""
    legal_name: str = ""
    url: str = ""
    description: str = ""
    founded: str = ""
    email: str = ""
    telephone: str = ""
    address: str = ""
    profiles: list[str] = Field(default_factory=list)


class StructuredData(BaseModel):
    """Structured data of a page."""

    products: list[Product] = Field(default_factory=list)
    offers: list[Offer] = Field(default_factory=list, description="offers without a product")
    organizations: list[Organization] = Field(default_factory=list)
    types: dict[str, int] = Field(default_factory=dict, description="number of items by type")


def read_structured(root: Element, url: str = "") -> StructuredData:
    """Return the structured data of a page. Invalid items are skipped."""
    data = StructuredData()
    counts: Counter[str] = Counter()
    for item, inside in _all_items([*_json_ld(root), *_microdata(root, url)]):
        names = _types(item)
        counts.update(names)
        if names & _PRODUCTS and len(data.products) < _MOST:
            data.products.append(_product(item))
        elif names & _OFFERS and not inside and len(data.offers) < _MOST:
            data.offers.append(_offer(item))
        elif names & _ORGANIZATIONS and len(data.organizations) < _MOST and _text(item.get("name")):
            data.organizations.append(_organization(item))
    data.organizations = _unique(data.organizations)
    data.products = _unique(data.products)
    data.types = dict(counts.most_common(30))
    return data


def _unique(items: list[Any]) -> list[Any]:
    seen: dict[str, Any] = {}
    for item in items:
        seen.setdefault(item.model_dump_json(), item)
    return list(seen.values())


# --- extraction of items ---


def _json_ld(root: Element) -> Iterator[Item]:
    for script in root.find_all("script"):
        if script.get("type").partition(";")[0].strip().lower() != "application/ld+json":
            continue
        source = "".join(child for child in script.children if isinstance(child, str))[:_LARGEST]
        try:
            found = json.loads(source.strip().removeprefix("<!--").removesuffix("-->"), strict=False)
        except (ValueError, RecursionError):
            continue
        yield from (one for one in _flat(found) if isinstance(one, Mapping))


def _flat(found: Any) -> Iterator[Any]:
    for one in found if isinstance(found, list) else [found]:
        if isinstance(one, Mapping) and isinstance(one.get("@graph"), list):
            yield from one["@graph"]
        else:
            yield one


def _microdata(root: Element, url: str) -> Iterator[Item]:
    scopes = (one for one in root.walk() if "itemscope" in one.attributes and "itemprop" not in one.attributes)
    for element in islice(scopes, _MOST):
        yield _microdata_item(element, url, 0)


def _microdata_item(element: Element, url: str, depth: int) -> Item:
    item: dict[str, Any] = {"@type": element.get("itemtype").split()}
    waiting = [child for child in reversed(element.children) if isinstance(child, Element)]
    while waiting:
        node = waiting.pop()
        inner = "itemscope" in node.attributes
        for name in node.get("itemprop").split():
            value = _microdata_item(node, url, depth + 1) if inner and depth < _DEEPEST else _microdata_value(node, url)
            item[name] = (
                [*item[name], value]
                if isinstance(item.get(name), list)
                else [item[name], value]
                if name in item
                else value
            )
        if not inner:
            waiting += [child for child in reversed(node.children) if isinstance(child, Element)]
    return item


def _microdata_value(node: Element, url: str) -> str:
    if "content" in node.attributes:
        return node.get("content")
    for name in ("href", "src"):
        if name in node.attributes:
            try:
                return urljoin(url, node.get(name))
            except ValueError:
                return ""
    return node.get("datetime") or node.get("value") or clean(node.text())


def _all_items(items: list[Item]) -> Iterator[tuple[Item, bool]]:
    """Yield all typed items, also nested ones, with True if they are inside a product or offer."""
    waiting: list[tuple[Any, bool, int]] = [(item, False, 0) for item in reversed(items)]
    while waiting:
        item, inside, depth = waiting.pop()
        if not isinstance(item, Mapping) or depth > _DEEPEST:
            continue
        names = _types(item)
        if names:
            yield item, inside
        inside = inside or bool(names & (_PRODUCTS | _OFFERS))
        for value in item.values():
            waiting += [(one, inside, depth + 1) for one in (value if isinstance(value, list) else [value])[:_MOST]]


# --- interpretation of items ---


def _types(item: Item) -> set[str]:
    found = item.get("@type", [])
    names = found if isinstance(found, list) else [found]
    return {
        name.rstrip("/").rpartition("/")[2].rpartition("#")[2].rpartition(":")[2]
        for name in names
        if isinstance(name, str) and name
    }


def _product(item: Item) -> Product:
    rating = _first(item.get("aggregateRating"))
    offers = [*_listed(item.get("offers")), *_listed(item.get("hasVariant"))]
    found = [
        offer
        for one in offers
        for offer in ([one] if _types(one) & _OFFERS or "price" in one else _listed(one.get("offers")))
    ]
    return Product(
        name=_text(item.get("name")),
        brand=_name(item.get("brand")) or _name(item.get("manufacturer")),
        sku=_text(item.get("sku")) or _text(item.get("mpn")) or _text(item.get("gtin13")),
        description=_text(item.get("description"))[:300],
        rating=_number(rating.get("ratingValue")),
        reviews=_whole(rating.get("reviewCount") or rating.get("ratingCount")),
        offers=[_offer(one) for one in found][:_MOST],
    )


def _offer(item: Item) -> Offer:
    specifications = _listed(item.get("priceSpecification"))
    crossed = [one for one in specifications if _text(one.get("priceType")).endswith(_CROSSED_OUT)]
    specification = next((one for one in specifications if one not in crossed), {})
    price = next((item[key] for key in ("price", "lowPrice") if key in item), specification.get("price"))
    amount, symbol = read_money(_text(price))
    return Offer(
        name=_text(item.get("name")),
        price=amount,
        highest_price=_number(item.get("highPrice")),
        currency=(_text(item.get("priceCurrency")) or _text(specification.get("priceCurrency"))).upper()[:8] or symbol,
        period=_period(specification),
        availability=_text(item.get("availability")).rpartition("/")[2],
        valid_until=_text(item.get("priceValidUntil")),
        url=_text(item.get("url")),
    )


_CROSSED_OUT: Final = ("ListPrice", "StrikethroughPrice", "SRP", "MSRP")  # schema.org/PriceTypeEnumeration: not paid
_UNITS: Final = {"MON": "month", "ANN": "year", "DAY": "day", "WEE": "week", "HUR": "hour"}  # UN/CEFACT common codes
_DURATIONS: Final = {
    "P1M": "month",
    "P1Y": "year",
    "P1D": "day",
    "P1W": "week",
    "P12M": "year",
    "P3M": "quarter",
}  # ISO 8601


def _period(specification: Item) -> str:
    quantity = _first(specification.get("referenceQuantity"))
    unit = _text(specification.get("unitCode")) or _text(quantity.get("unitCode"))
    duration = _text(specification.get("billingDuration"))
    return _UNITS.get(unit.upper(), "") or _DURATIONS.get(duration, "") or _text(specification.get("unitText"))[:40]


def _organization(item: Item) -> Organization:
    address = _first(item.get("address"))
    parts = [
        _text(address.get(key))
        for key in ("streetAddress", "postalCode", "addressLocality", "addressRegion", "addressCountry")
    ]
    return Organization(
        name=_text(item.get("name")),
        legal_name=_text(item.get("legalName")),
        url=_text(item.get("url")),
        description=_text(item.get("description"))[:300],
        founded=_text(item.get("foundingDate")),
        email=_text(item.get("email")),
        telephone=_text(item.get("telephone")),
        address=", ".join(part for part in parts if part) or (_text(item.get("address")) if not address else ""),
        profiles=[_text(one) for one in _list(item.get("sameAs")) if isinstance(one, str)][:20],
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _listed(value: Any) -> list[Item]:
    return [one for one in _list(value) if isinstance(one, Mapping)]


def _first(value: Any) -> Item:
    return next(iter(_listed(value)), {})


def _text(value: Any) -> str:
    first = next(iter(_list(value)), "")
    if isinstance(first, Mapping):
        first = first.get("@value", first.get("name", ""))
    return clean(str(first))[:500] if isinstance(first, str | int | float) and not isinstance(first, bool) else ""


def _name(value: Any) -> str:
    return _text(value)


def _number(value: Any) -> float | None:
    return read_money(_text(value))[0]


def _whole(value: Any) -> int | None:
    number = _number(value)
    return int(number) if number is not None else None
