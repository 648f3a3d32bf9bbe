"""What runs artifacts, without the compiler: linking, calls, memory, threads."""
