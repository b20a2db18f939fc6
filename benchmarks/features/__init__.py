"""What authors of servers and users of clients have here, in FastMCP and in the official Python SDK: a table, checked by programs.

python -m benchmarks.exam features      installs the peers in environments of their own, and looks whether each has what the table says
"""
