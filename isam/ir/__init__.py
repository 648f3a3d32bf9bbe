"""The language: kernels, instructions and everything that can be said about them without a machine."""
