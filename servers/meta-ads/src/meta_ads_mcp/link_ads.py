"""Tool that creates a link ad from text and image, paused."""

from __future__ import annotations

from typing import Annotated, Any

from mcpfactory_runtime import ToolError

from . import graph
from .accounts import node_of

__all__ = ["create_link_ad"]


async def _uploaded(node: str, image_base64: str) -> str:
    """Upload an image and return its hash."""
    images = (await graph.post(node, "adimages", bytes=image_base64)).get("images") or {}
    found = next((one.get("hash") for one in images.values() if isinstance(one, dict)), None)
    if not found:
        raise ToolError("Meta accepted the image but returned no hash.\nhint: try again, with a JPEG or PNG in base64.")
    return str(found)


async def create_link_ad(
    ad_account_id: Annotated[str, "ID of the ad account, act_1234567890."],
    ad_set_id: Annotated[str, "ID of the ad set for the ad."],
    page_id: Annotated[str, "ID of the Facebook page that publishes the ad, from list_promote_pages."],
    name: Annotated[str, "Name of ad and creative in Ads Manager."],
    link: Annotated[str, "https URL that the ad links to."],
    message: Annotated[str, "Text above the image."],
    headline: Annotated[str, "Line below the image."] = "",
    description: Annotated[str, "Small text below the headline."] = "",
    call_to_action: Annotated[
        str, "Button: LEARN_MORE, SHOP_NOW, SIGN_UP, BOOK_NOW, GET_OFFER, DOWNLOAD …"
    ] = "LEARN_MORE",
    image_hash: Annotated[str, "Image hash from list_ad_images; or give image_url or image_base64."] = "",
    image_url: Annotated[str, "https URL of an image."] = "",
    image_base64: Annotated[str, "JPEG or PNG in base64, to upload."] = "",
    instagram_user_id: Annotated[str, "ID of the Instagram account that publishes the ad."] = "",
    url_tags: Annotated[str, "Query added to the link, such as utm_source=facebook."] = "",
) -> dict[str, Any]:
    """Make a new link ad with text, image, headline and button in an ad set, paused. Creates image, creative and ad.

    Nothing is spent until set_status activates the ad; get_ad_previews shows a preview.
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
        raise ToolError(f"The creative {creative} was created, but not the ad: {error}") from None
    return {
        "ad_id": ad.get("id"),
        "creative_id": creative,
        "image_hash": chosen or None,
        "state": "PAUSED",
        "next": "get_ad_previews shows it; set_status with ACTIVE switches it on.",
    }  # fmt: skip
