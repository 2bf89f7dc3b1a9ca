"""The equations of sequence evolution in plain NumPy; knows no device, no tree, no file."""
