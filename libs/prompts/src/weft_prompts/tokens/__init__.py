"""Texts as token ids, the same that the engine makes."""
