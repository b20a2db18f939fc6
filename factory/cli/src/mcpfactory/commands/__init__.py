"""One module per noun: parse arguments, call one function, print the result."""
