"""Other ways in than text: index strings, Python functions, kernels built by a program."""
