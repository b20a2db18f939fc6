"""Detection of a page's technology by response headers, scripts and meta tags, with evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from pydantic import BaseModel

from .html import Element
from .text import clean

__all__ = ["Technology", "find_technology"]

_LONGEST: Final = 2_000  # characters of a URL or header to search
Place = Literal["header", "script", "meta", "markup"]


class Technology(BaseModel):
    """A detected technology with its evidence."""

    name: str
    kind: str
    evidence: str


# name, kind, place, name of the header or meta tag (or ""), pattern
_SIGNS: Final[tuple[tuple[str, str, Place, str, str], ...]] = (
    ("Cloudflare", "CDN", "header", "cf-ray", r"."),
    ("Fastly", "CDN", "header", "x-served-by", r"^cache-"),
    ("Amazon CloudFront", "CDN", "header", "x-amz-cf-id", r"."),
    ("Akamai", "CDN", "header", "x-akamai-transformed", r"."),
    ("Vercel", "hosting", "header", "x-vercel-id", r"."),
    ("Netlify", "hosting", "header", "x-nf-request-id", r"."),
    ("GitHub Pages", "hosting", "header", "x-github-request-id", r"."),
    ("Heroku", "hosting", "header", "via", r"vegur|heroku"),
    ("nginx", "web server", "header", "server", r"^nginx"),
    ("Apache", "web server", "header", "server", r"^apache"),
    ("Microsoft IIS", "web server", "header", "server", r"^microsoft-iis"),
    ("LiteSpeed", "web server", "header", "server", r"^litespeed"),
    ("PHP", "language", "header", "x-powered-by", r"^php"),
    ("ASP.NET", "framework", "header", "x-powered-by", r"^asp\.net"),
    ("Express", "framework", "header", "x-powered-by", r"^express"),
    ("Next.js", "framework", "header", "x-powered-by", r"^next\.js"),
    ("Next.js", "framework", "script", "", r"/_next/static/"),
    ("Nuxt", "framework", "script", "", r"/_nuxt/"),
    ("Gatsby", "framework", "meta", "generator", r"^gatsby"),
    ("WordPress", "CMS", "meta", "generator", r"^wordpress"),
    ("WordPress", "CMS", "script", "", r"/wp-(?:content|includes)/"),
    ("WooCommerce", "shop", "script", "", r"/plugins/woocommerce/"),
    ("Drupal", "CMS", "meta", "generator", r"^drupal"),
    ("Joomla", "CMS", "meta", "generator", r"^joomla"),
    ("Ghost", "CMS", "meta", "generator", r"^ghost"),
    ("Hugo", "site generator", "meta", "generator", r"^hugo"),
    ("Webflow", "site builder", "meta", "generator", r"^webflow"),
    ("Wix", "site builder", "meta", "generator", r"^wix"),
    ("Squarespace", "site builder", "script", "", r"static\d?\.squarespace\.com"),
    ("Shopify", "shop", "script", "", r"cdn\.shopify\.com"),
    ("Magento", "shop", "script", "", r"/static/version\d+/frontend/|mage/"),
    ("BigCommerce", "shop", "script", "", r"cdn\d*\.bigcommerce\.com"),
    ("Google Tag Manager", "tag manager", "script", "", r"googletagmanager\.com/gtm\.js"),
    ("Google Analytics", "analytics", "script", "", r"googletagmanager\.com/gtag/js|google-analytics\.com"),
    ("Plausible", "analytics", "script", "", r"plausible\.io/js"),
    ("Matomo", "analytics", "script", "", r"matomo\.js|piwik\.js"),
    ("Segment", "analytics", "script", "", r"cdn\.segment\.com"),
    ("Hotjar", "analytics", "script", "", r"static\.hotjar\.com"),
    ("PostHog", "analytics", "script", "", r"posthog\.com/"),
    ("Mixpanel", "analytics", "script", "", r"cdn\.mxpnl\.com"),
    ("HubSpot", "marketing", "script", "", r"js(?:-[a-z0-9]+)?\.(?:hs-scripts|hsforms|hubspot)\.(?:com|net)"),
    ("Marketo", "marketing", "script", "", r"munchkin\.marketo\.net"),
    ("Intercom", "chat", "script", "", r"widget\.intercom\.io"),
    ("Drift", "chat", "script", "", r"js\.driftt?\.com"),
    ("Zendesk", "chat", "script", "", r"static\.zdassets\.com"),
    ("Crisp", "chat", "script", "", r"client\.crisp\.chat"),
    ("Stripe", "payments", "script", "", r"js\.stripe\.com"),
    ("Paddle", "payments", "script", "", r"cdn\.paddle\.com"),
    ("PayPal", "payments", "script", "", r"paypal\.com/sdk"),
    ("OneTrust", "consent", "script", "", r"cdn\.cookielaw\.org"),
    ("Cookiebot", "consent", "script", "", r"consent\.cookiebot\.com"),
    ("reCAPTCHA", "protection", "script", "", r"google\.com/recaptcha"),
    ("Angular", "framework", "markup", "ng-version", r"."),
    ("React", "framework", "markup", "data-reactroot", r""),
)
_COMPILED: Final = tuple(
    (name, kind, place, where, re.compile(pattern, re.IGNORECASE)) for name, kind, place, where, pattern in _SIGNS
)


def find_technology(root: Element, headers: Mapping[str, str]) -> list[Technology]:
    """Return the detected technologies, each once.

    Args:
        root: root of the document.
        headers: response headers with lowercase names.
    """
    values: dict[Place, list[tuple[str, str]]] = {
        "header": list(headers.items()),
        "script": [("", address) for address in _addresses(root)],
        "meta": [(one.get("name").lower(), one.get("content")) for one in root.find_all("meta")],
        "markup": [pair for element in root.walk() for pair in element.attributes.items() if pair[0] in _MARKUP],
    }
    found: dict[str, Technology] = {}
    for name, kind, place, where, pattern in _COMPILED:
        for key, value in values[place] if name not in found else ():
            if key == where and pattern.search(value[:_LONGEST]):
                shown = clean(value)[:100]
                evidence = f"{place} {key}: {shown}" if key else f"{place} {shown}"
                found[name] = Technology(name=name, kind=kind, evidence=evidence)
                break
    return list(found.values())


_MARKUP: Final = frozenset(where for _, _, place, where, _ in _SIGNS if place == "markup")


def _addresses(root: Element) -> Iterator[str]:
    for element in root.find_all("script", "link", "img", "iframe"):
        if address := element.get("src") or (element.get("href") if element.tag == "link" else ""):
            yield address
