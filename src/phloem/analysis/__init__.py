"""The single door: typed settings in, result records out. CLI, web page and notebooks come through here."""
