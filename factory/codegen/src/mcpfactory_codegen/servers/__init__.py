"""A server's folder: create, build, update, rename and merge it. `tree` alone writes, and refuses to leave the folder."""
