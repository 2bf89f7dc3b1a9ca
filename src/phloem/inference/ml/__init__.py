"""Maximum likelihood."""
