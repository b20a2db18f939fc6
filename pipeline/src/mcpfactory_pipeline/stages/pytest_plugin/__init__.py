"""A plugin of pytest for the tests of servers; the folder is put on the path of their process."""
