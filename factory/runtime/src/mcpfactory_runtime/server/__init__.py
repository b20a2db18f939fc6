"""The server: registry, dispatch, context, results, and `Server` above them."""
