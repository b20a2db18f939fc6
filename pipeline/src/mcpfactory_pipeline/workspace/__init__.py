"""The repository of servers: which there are, what their files configure, their addresses and their waivers."""
