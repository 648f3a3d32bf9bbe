"""Opinions: Approaches that come with ISAM. Nothing in the core knows them."""
