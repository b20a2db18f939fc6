"""A link ad from its text and image in one step: image, creative and ad, all paused."""

from __future__ import annotations

from typing import Annotated, Any

from mcpfactory_runtime import ToolError

from . import graph
from .accounts import node_of

__all__ = ["create_link_ad"]


async def _uploaded(node: str, image_base64: str) -> str:
    """Return the hash of an image that was uploaded."""
    images = (await graph.post(node, "adimages", bytes=image_base64)).get("images") or {}
    found = next((one.get("hash") for one in images.values() if isinstance(one, dict)), None)
    if not found:
        raise ToolError("Meta took the image but named no hash.\nhint: try again, with a JPEG or PNG in base64.")
    return str(found)


async def create_link_ad(
    ad_account_id: Annotated[str, "The ad account, act_1234567890."],
    ad_set_id: Annotated[str, "The ad set that the ad goes into."],
    page_id: Annotated[str, "The Facebook page that speaks; list_promote_pages has them."],
    name: Annotated[str, "Name of ad and creative in Ads Manager."],
    link: Annotated[str, "The https address that people are led to."],
    message: Annotated[str, "The text above the image."],
    headline: Annotated[str, "The line below the image."] = "",
    description: Annotated[str, "The small text below the headline."] = "",
    call_to_action: Annotated[
        str, "The button: LEARN_MORE, SHOP_NOW, SIGN_UP, BOOK_NOW, GET_OFFER, DOWNLOAD …"
    ] = "LEARN_MORE",
    image_hash: Annotated[str, "An image of the account, from list_ad_images; or image_url, or image_base64."] = "",
    image_url: Annotated[str, "The https address of an image."] = "",
    image_base64: Annotated[str, "A JPEG or PNG in base64, which is uploaded."] = "",
    instagram_user_id: Annotated[str, "The Instagram account that speaks there."] = "",
    url_tags: Annotated[str, "Query added to the link, such as utm_source=facebook."] = "",
) -> dict[str, Any]:
    """Make a link ad with text, image, headline and button in an ad set, paused: uploads the image, makes creative and ad.

    Nothing is spent until set_status switches the ad on; get_ad_previews shows it before.
    """
    if sum(map(bool, (image_hash, image_url, image_base64))) != 1:
        raise ToolError("An ad has one image.\nhint: give one of image_hash, image_url and image_base64.")
    node = node_of(ad_account_id)
    chosen = await _uploaded(node, image_base64) if image_base64 else image_hash
    story = {
        "link": link,
        "message": message,
        "name": headline,
        "description": description,
        "image_hash": chosen,
        "picture": image_url,
        "call_to_action": {"type": call_to_action, "value": {"link": link}},
    }
    spec = {
        "page_id": page_id,
        "instagram_user_id": instagram_user_id,
        "link_data": {key: one for key, one in story.items() if one},
    }
    made = await graph.post(
        node,
        "adcreatives",
        name=name,
        object_story_spec={key: one for key, one in spec.items() if one},
        url_tags=url_tags,
    )
    creative = str(made.get("id", ""))
    try:
        ad = await graph.post(
            node, "ads", name=name, adset_id=ad_set_id, creative={"creative_id": creative}, status="PAUSED"
        )
    except ToolError as error:
        raise ToolError(f"The creative {creative} was made, the ad was not: {error}") from None
    return {
        "ad_id": ad.get("id"),
        "creative_id": creative,
        "image_hash": chosen or None,
        "state": "PAUSED",
        "next": "get_ad_previews shows it; set_status with ACTIVE switches it on.",
    }  # fmt: skip
