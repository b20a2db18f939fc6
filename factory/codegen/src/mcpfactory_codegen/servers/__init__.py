"""A server's folder: create, build, update, rename and merge it. Only `server_files` writes, and refuses paths outside the folder."""
