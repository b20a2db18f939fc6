"""HTTP as a plain ASGI application, for both lifecycles and the older HTTP+SSE; serving it needs uvicorn and no framework."""
