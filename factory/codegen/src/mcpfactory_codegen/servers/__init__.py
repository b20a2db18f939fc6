"""Creation, update, renaming and merging of a server's folder.

`server_files` refuses to write outside the server's folder.
"""
