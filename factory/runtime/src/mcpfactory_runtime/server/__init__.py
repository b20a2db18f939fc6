"""What a server is made of: registry, dispatch, context, results."""
