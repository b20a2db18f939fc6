"""One module for each noun: parse, call one function, print."""
