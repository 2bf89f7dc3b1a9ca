"""`phloem page`: a local page that shows data, starts the commands, and looks at what they wrote."""
