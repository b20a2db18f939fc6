"""HTTP transports as a plain ASGI application: Streamable HTTP for both lifecycles, and the older HTTP+SSE."""
