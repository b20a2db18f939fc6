"""Creation, update, renaming and merging of a server's folder."""
