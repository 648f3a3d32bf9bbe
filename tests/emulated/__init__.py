"""Products by tiles as programs that need no Python: on a CPU with AMX, or on an emulator of one, between pages that
nobody may touch. ``python -m tests.campaign_emulated`` runs them."""
