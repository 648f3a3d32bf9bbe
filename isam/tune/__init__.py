"""What is measured on the machine at hand."""
