"""A server's folder: create, build, update, rename and merge it. `server_files` alone writes, and refuses to leave the folder."""
