"""What this machine offers, and the doors to its compilers."""
