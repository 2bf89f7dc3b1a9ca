"""Numbers in, numbers out. One column of files per kind of hardware; `reference` specifies the others."""
